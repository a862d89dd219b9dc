"""The gamma family: how far annotators agree on where errors are and what they are, by the best alignment of all marks.

Mathet, Widlöcher and Métivier (2015), "The Unified and Holistic Method Gamma for Inter-Annotator Agreement Measure and
Alignment"; Mathet (2017) for gamma-cat and gamma-k. From marks to numbers, one module a step: `continuum` (marks of one
text), `dissimilarity`, `problem` (what is solved), `upper`, `master`, `pricing`, `search` (its parts), `best` (the
solver), `samplers` (chance), `categories` (gamma-cat, gamma-k), `measured` (one text),
`gamma_work` (texts as work that is spread out), `pooled` (all of them).
"""

"""The gamma family: agreement on positions and labels of marks, based on the best alignment of all annotators.

Mathet, Widlöcher and Métivier (2015), "The Unified and Holistic Method Gamma for Inter-Annotator Agreement Measure and
Alignment"; Mathet (2017) for gamma-cat and gamma-k. The modules, from marks to numbers:

- `continuum` (marks of one text) and `dissimilarity`
- `set_partitioning` (the optimisation problem), `heuristic_alignments`, `master_problem`, `column_pricing`,
  `cluster_search` and `work_budget` (parts of the solver), `best_alignment` (the solver)
- `chance_samplers` (expected disorder), `gamma_cat` (gamma-cat and gamma-k) and `text_gamma` (one text)
- `partitioned_gamma` (texts distributed over processes) and `pooled_gamma` (all texts)
"""

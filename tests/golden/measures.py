"""Figures that the measures must give on released data, as recomputed by independent code."""

from __future__ import annotations

SNAC_LABELS = ("char", "scene", "ref", "incon", "coref", "gram", "rep")

# Goyal et al. (2022), Figure 4 left: fraction of distinct errors by type. The figure prints no numbers.
SNAC_FRACTIONS = {
    "book_175b": (0.285, 0.270, 0.233, 0.070, 0.067, 0.048, 0.027),
    "book_6b": (0.306, 0.214, 0.182, 0.038, 0.123, 0.117, 0.020),
    "tripod": (0.326, 0.196, 0.193, 0.088, 0.126, 0.054, 0.016),
}
# Figure 4 right: mean over summaries of the share of whitespace tokens covered; unions, first occurrence of a quote.
SNAC_COVERAGE = {
    "book_175b": (0.0257, 0.2141, 0.0779, 0.0356, 0.0092, 0.0250, 0.0106),
    "book_6b": (0.0283, 0.1865, 0.0677, 0.0189, 0.0165, 0.0675, 0.0105),
    "tripod": (0.0252, 0.1763, 0.1056, 0.0667, 0.0083, 0.0552, 0.0091),
}
# Likewise with the k-th repetition of a quote at its k-th occurrence: only these differ.
SNAC_COVERAGE_KTH = {
    ("book_175b", "coref"): 0.0097,
    ("book_6b", "coref"): 0.0173,
    ("tripod", "coref"): 0.0095,
    ("book_6b", "char"): 0.0284,
}
SNAC_ANY = {"book_175b": 0.341, "book_6b": 0.337, "tripod": 0.362}
SNAC_ANY_POOLED = {"book_175b": 0.346, "book_6b": 0.331, "tripod": 0.337}
SNAC_ANY_POOLED_KTH = {"book_175b": 0.347, "book_6b": 0.332, "tripod": 0.337}

# Dou et al. (2022), the 50 texts released as an example: union, whitespace tokens, severity-1 grammar left out.
SCARECROW_COVERAGE = {"gpt3": 0.2539, "gpt2": 0.5400, "gpt2-xl": 0.3266, "grover-mega": 0.1627, "human": 0.1526}
SCARECROW_WITH_ANTECEDENTS = {
    "gpt3": 0.2728,
    "gpt2": 0.5475,
    "gpt2-xl": 0.3329,
    "grover-mega": 0.1657,
    "human": 0.1526,
}

# WMT 2021 TED talks, English to German: MQM score per segment. The release prints 1.96 for eTranslation.
MQM_SCORES = {
    "ref": 0.91,
    "Facebook-AI": 1.06,
    "Online-W": 1.12,
    "VolcTrans-AT": 1.24,
    "metricsystem3": 1.44,
    "VolcTrans-GLAT": 1.49,
    "HuaweiTSC": 1.50,
    "metricsystem1": 1.63,
    "metricsystem2": 1.69,
    "metricsystem5": 1.72,
    "UEdin": 1.77,
    "metricsystem4": 1.78,
    "eTranslation": 1.97,
    "Nemo": 2.14,
}

# Dou et al. (2022), Table 5: mean, sd and c.v. in percent of error counts in 50 generations.
SCARECROW_VARIATION = {
    "bad-math": (8.51, 3.78, 44.5),
    "commonsense": (39.40, 8.67, 22.0),
    "encyclopedic": (13.56, 3.94, 29.1),
    "grammar-usage": (126.19, 16.81, 13.3),
    "incoherent": (96.89, 16.58, 17.1),
    "off-prompt": (167.29, 23.39, 14.0),
    "redundant": (114.77, 22.53, 19.6),
    "self-contradiction": (60.54, 11.94, 19.7),
    "technical-jargon": (100.95, 24.09, 23.9),
    "needs-google": (482.84, 42.22, 8.7),
}
SCARECROW_VARIATION_TOTAL = (1268.48, 55.59, 19.72)

# FRANK (Pagnoni et al. 2021), all 2,246 summaries: documents, Pearson, Spearman and partial Pearson given the system of
# metrics with human factuality, recomputed from the release.
FRANK_CORRELATIONS = {
    "rouge-1": (2246, 0.3345, 0.3429, 0.1367),
    "rouge-l": (2246, 0.1753, 0.1768, 0.1309),
    "bleu": (2246, 0.2540, 0.2819, 0.1014),
    "meteor": (2246, 0.3717, 0.3923, 0.1370),
    "bertscore-p-art": (2246, 0.6163, 0.6294, 0.2711),
    "factcc": (2246, 0.5998, 0.5842, 0.2039),
    "qags": (2246, 0.5784, 0.5677, 0.0650),
    "feqa": (2242, 0.5588, 0.5643, 0.0045),
    "dep-entail": (2163, 0.1107, 0.0887, 0.1624),
}

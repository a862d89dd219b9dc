"""Figures of agreement, printed or recomputed by independent code from the released data."""

from __future__ import annotations

import numpy as np

N = np.nan
# Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", section C: 4 observers, 12 units, missing data.
KRIPPENDORFF_2011 = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, N, N, N],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, N, 3],
        [N, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, N],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, N],
    ]
)
# The same, sections C and D: nominal, ordinal, interval and ratio metrics.
KRIPPENDORFF_2011_ALPHAS = {"nominal": 0.743, "ordinal": 0.815, "interval": 0.849, "ratio": 0.797}

# Fleiss (1971), the worked example as it is usually reprinted: 10 subjects, 14 raters, 5 categories; kappa 0.210.
FLEISS_COUNTS = np.array(
    [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ]
)

# Thomson & Reiter (2020), annotations sheet, section 4.3: the paper prints kappa 0.79 and does not say which.
# Recomputed by item: convention -> measure -> value.
THOMSON_REITER_2020 = {
    "marked": {"alpha": 0.7898, "kappa-fleiss": 0.774, "kappa-fleiss-variable": 0.793},
    "typed": {"alpha": 0.8032, "kappa-fleiss": 0.788},
    "no-error": {"alpha": 0.4972, "kappa-fleiss": 0.497},
    "no-error-majority": {"alpha": 0.5815, "kappa-fleiss": 0.581},
    "no-error-typed-majority": {"kappa-fleiss": 0.626},
}
# The same, Cohen's kappa of T1-T2, T1-T3, T2-T3.
THOMSON_REITER_2020_COHEN = {
    "marked": (0.7920, 0.7979, 0.7592),
    "no-error-majority": (0.5817, 0.5908, 0.5722),
}
# The same: units with a value, under each convention.
THOMSON_REITER_2020_ITEMS = {"marked": 536, "no-error": 536, "no-error-majority": 418, "no-error-typed-majority": 397}

# Goyal et al. (2022), Table 5, crowd, recomputed from the released votes: alpha and two-agree %, by words and between
# white space. The paper prints .69 .30 .10 .13 and 67 35 11 14.
SNAC_2022 = {
    "words": {
        "char": (0.697, 65.3),
        "scene": (0.293, 35.2),
        "ref": (0.098, 11.7),
        "incon": (0.141, 15.6),
        "coref": (0.064, 6.4),
        "gram": (0.136, 13.4),
        "rep": (0.424, 36.3),
    },
    "whitespace": {"char": (0.701, 65.5), "scene": (0.294, 35.2), "ref": (0.096, 11.6), "incon": (0.142, 15.6)},
}

# Span annotation of data-to-text outputs, `iaa`: 29 people, 12 texts. Labels in the order of their indices.
D2T_LABELS = ("any", "contradictory", "not-checkable", "misleading", "incoherent", "repetitive", "other")
D2T_ALPHA_CHARACTERS = (0.4469, 0.4785, 0.4869, 0.0850, 0.1080, -0.0031, -0.0013)
D2T_ALPHA_WHITESPACE = (0.4564, 0.4878, 0.4701, 0.0817, 0.1053, -0.0037, -0.0013)
D2T_TWO_AGREE_CHARACTERS = (81.06, 80.17, 50.76, 55.77, 32.55, 4.12, 0.0)
# The same, over all pairs of annotators, on characters.
# With the smaller of the two numbers of marks as the overlap on a character. The product of both, which exceeds 1 for
# nested marks, gives 0.4492, 0.5995, 0.4523 and 0.5317.
D2T_PAIRS = {"f1-typed": 0.4437, "f1": 0.5793, "f1-typed-macro": 0.4489, "f1-macro": 0.5231}
D2T_PEARSON, D2T_NUMBER_OF_PAIRS = 0.769, 406
# The same project's qualification task, first rounds, any label, characters.
D2T_QUALIFICATION_ALPHA = 0.2354

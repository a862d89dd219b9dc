"""Clark et al. (2021), "All That's 'Human' Is Not Gold", Tables 1-3 as printed.

Accuracy, F1, precision, recall, % human, % confident; 650 judgements a row (130 evaluators, 5 texts each).
"""

from __future__ import annotations

from finecomb.statistics.measures.printed_confusion import PrintedRow

JUDGEMENTS = 650

# Table 1, and Table 2 without its "None" rows, which repeat GPT3 of Table 1.
ROWS: dict[tuple[str, ...], PrintedRow] = {
    ("GPT2", "stories"): PrintedRow("0.62", "0.60", "0.64", "0.56", "55.23", "52.00"),
    ("GPT2", "news"): PrintedRow("0.57", "0.52", "0.60", "0.47", "60.46", "51.38"),
    ("GPT2", "recipes"): PrintedRow("0.55", "0.48", "0.59", "0.40", "65.08", "50.31"),
    ("GPT3", "stories"): PrintedRow("0.48", "0.40", "0.47", "0.36", "62.15", "47.69"),
    ("GPT3", "news"): PrintedRow("0.51", "0.44", "0.54", "0.37", "65.54", "52.46"),
    ("GPT3", "recipes"): PrintedRow("0.50", "0.41", "0.50", "0.34", "66.15", "50.62"),
    ("instructions", "stories"): PrintedRow("0.50", "0.45", "0.49", "0.42", "57.69", "45.54"),
    ("instructions", "news"): PrintedRow("0.56", "0.48", "0.55", "0.43", "62.77", "52.15"),
    ("instructions", "recipes"): PrintedRow("0.50", "0.41", "0.52", "0.33", "67.69", "49.85"),
    ("examples", "stories"): PrintedRow("0.57", "0.55", "0.58", "0.53", "53.69", "64.31"),
    ("examples", "news"): PrintedRow("0.53", "0.48", "0.52", "0.45", "58.00", "65.69"),
    ("examples", "recipes"): PrintedRow("0.56", "0.56", "0.61", "0.51", "55.23", "64.00"),
    ("comparison", "stories"): PrintedRow("0.56", "0.56", "0.55", "0.57", "48.46", "56.62"),
    ("comparison", "news"): PrintedRow("0.52", "0.51", "0.53", "0.48", "53.85", "50.31"),
    ("comparison", "recipes"): PrintedRow("0.51", "0.49", "0.52", "0.46", "54.31", "53.54"),
}

# What the percentages of Table 1 are in judgements.
HUMAN = {"GPT2": (359, 393, 423), "GPT3": (404, 426, 430)}
CONFIDENT = {"GPT2": (338, 334, 327), "GPT3": (310, 341, 329)}

# One of the matrices that fit GPT2 stories: TP, FP, FN, TN with machine as the positive class.
GPT2_STORIES = (186, 105, 145, 214)

# Table 3: % of codes about form, content and machine capabilities.
CODES = {"none": (47.1, 24.6, 28.3), "examples": (32.5, 50.0, 17.5)}

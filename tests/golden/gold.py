"""Figures of gold standards and of scores against them, recomputed by independent code from the released data."""

from __future__ import annotations

# Thomson & Reiter (2020), Table 1; every cell is also what the paper prints. Columns: total, all agree, the six labels
# in the order of the protocol (None on the diagonal), no type, no error.
TABLE_1 = {
    "number": (184, 124, None, 0, 12, 1, 5, 0, 0, 42),
    "name": (105, 75, 0, None, 4, 2, 0, 0, 3, 21),
    "word": (80, 29, 14, 3, None, 3, 1, 0, 3, 27),
    "context": (19, 7, 0, 2, 1, None, 0, 0, 0, 9),
    "not-checkable": (6, 1, 3, 0, 0, 0, None, 0, 0, 2),
    "other": (3, 1, 0, 0, 0, 0, 0, None, 0, 2),
    "split": (21, 0, 12, 5, 16, 9, 4, 3, 0, 14),
}
# Table 2 as counts in seven stories: total, the six labels, split. The paper's rates fit an earlier state of the data.
TABLE_2 = {
    "wiseman": (143, 65, 37, 35, 3, 2, 1, 4),
    "puduppully": (147, 77, 38, 27, 5, 0, 0, 6),
    "rebuffel": (107, 42, 30, 18, 11, 4, 2, 11),
}
# The same: precision and recall of each annotator against the gold they made.
ANNOTATORS = {"T1": (0.9236, 0.8971), "T2": (0.9620, 0.9091), "T3": (0.8414, 0.9139)}

# The accuracy shared task: (matched, gold, predicted) by mistakes and by tokens, from the task's own script.
SUBMISSION = {
    "any": (350, 1214, 571, 461, 1807, 1074),
    "name": (160, 317, 237, 211, 437, 271),
    "number": (154, 474, 334, 179, 484, 803),
}
SUBMISSION_FOUND = {"name": 160, "number": 154, "not-checkable": 15, "word": 14, "context": 6, "other": 1}
SAMPLE = {
    "any": (8, 16, 12, 10, 22, 20),
    "name": (4, 5, 6, 6, 7, 6),
    "number": (4, 6, 6, 4, 6, 14),
}
LAVAL = {
    "any": (589, 1214, 1911),
    "name": (167, 317, 249),
    "number": (142, 474, 377),
    "word": (193, 334, 951),
    "context": (0, 51, 120),
    "not-checkable": (22, 37, 214),
}
LAVAL_TOKENS = (786, 1807, 2295)

# Span annotation of data-to-text outputs, `dev`: characters, precision, recall and F1, hard (with label) then soft.
D2T_JUDGES = {
    "claude-3-7-sonnet": (0.2467, 0.3476, 0.2886, 0.3409, 0.4973, 0.4045),
    "deepseek-r1": (0.2596, 0.2010, 0.2266, 0.4509, 0.3631, 0.4023),
    "gemini-2-0-flash-thinking": (0.2322, 0.2878, 0.2571, 0.3927, 0.5060, 0.4422),
    "gpt4o": (0.1600, 0.2293, 0.1885, 0.2729, 0.4026, 0.3253),
    "llama3-3": (0.1272, 0.2157, 0.1601, 0.2412, 0.4181, 0.3059),
    "o3-mini": (0.2995, 0.2773, 0.2879, 0.3806, 0.3664, 0.3734),
}

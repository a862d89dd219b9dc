"""Statistics of annotations: selection, measures, inference, agreement, comparisons, gold, judges and power."""

"""Selection of the documents, annotators, annotations and marks that a statistic reads."""

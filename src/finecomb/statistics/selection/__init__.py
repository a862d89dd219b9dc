"""Selection of the documents, annotators, annotations and marks that enter a statistic."""

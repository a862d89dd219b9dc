"""Gold standards: merging of annotators into gold, and scoring of judges against gold."""

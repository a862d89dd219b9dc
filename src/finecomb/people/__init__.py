"""People who annotate: onboarding, assignment rules, grading, pay, screening and signals, as functions of records."""

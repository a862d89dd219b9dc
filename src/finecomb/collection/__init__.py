"""Collection of annotations from people: onboarding, assignment, design, recruitment, pay, screening and
adjudication.
"""

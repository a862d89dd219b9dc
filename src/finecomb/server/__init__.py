"""Study server: sign-in, task assignment, saving, and the pages of annotators and researchers."""

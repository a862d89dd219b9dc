"""What people look at: texts with their marks in the terminal, tables of counts."""

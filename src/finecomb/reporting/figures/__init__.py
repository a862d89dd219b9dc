"""Figures: the data model, SVG output, and charts for papers and critics."""

"""Figures: the figure model, its drawing as SVG, and the charts of papers and critics."""

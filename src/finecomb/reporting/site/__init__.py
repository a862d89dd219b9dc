"""Report site of a study: static pages with figures, tables and all texts, readable without a server."""

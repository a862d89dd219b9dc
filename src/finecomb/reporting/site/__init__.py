"""The report of a study: a folder of plain pages with figures, tables and every text, which opens without a server."""

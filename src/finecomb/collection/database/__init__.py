"""Storage of studies in a SQLite or PostgreSQL database.

`location` names a study's database, `connection` opens it, `migrations` upgrades its tables and `studies` finds a study
in it. `record_import` fills it from records, `store` reads a study and `writer` makes all changes. `backup` copies and
restores it, and `repair` handles rows that cannot be read.
"""

"""Studies in a database, SQLite or PostgreSQL: the one part that speaks SQL.

`places` says where a study is, `database` opens it, `migrations` bring its tables up to date, `studies` finds the one
that is meant, `taking` fills it from records, `store` reads it and is the door to changing it, `writer` makes every
change, `giving` hands out texts, `tasks` keeps what annotators do, `people` knows who may come in, `running` is what
researchers do, `backup` copies it and puts it back.
"""

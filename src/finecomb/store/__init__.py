"""Studies in a database, SQLite or PostgreSQL: the one part that speaks SQL.

`places` says where a study is, `database` opens it, `migrations` bring its tables up to date, `taking` fills it from
records, `store` reads one study and is the door to changing it, `writer` makes every change, `giving` hands out texts,
`tasks` keeps what annotators do, `people` knows who may come in, `running` is what researchers do.
"""

"""May a judge stand in for people, and what do many cheap judges and a few people say together?"""

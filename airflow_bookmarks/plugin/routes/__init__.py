"""The routes.

read       change nothing
change     move a bookmark
shards     move all of those of a sharded job
ownership  say whose a job is
"""

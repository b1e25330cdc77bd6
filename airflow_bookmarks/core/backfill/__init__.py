"""What a backfill takes: rules without I/O.

order   which job goes back after which
pace    how long a job takes for what it reads again
"""

"""Whether somebody has to look at a job: rules without I/O.

cadence   how often a job commits, and since when it is silent for too long
record    what is kept of it for lists of very many jobs
verdict   the one state of a job that a person sees, with its reason and since when
"""

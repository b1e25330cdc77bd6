"""Contexts: from `job.read(ctx)` to a frame, one module for each kind of source.

options      the keywords of a read, and what the runs of a loop share
scope        what a read belongs to: the job, the context, its format, schema and options
columns      hold the columns of a read to those of the run before, or start over with the new ones
files        plan and read files
upstream     plan and read what another job has published
own          plan and read a source of a kind of your own
"""

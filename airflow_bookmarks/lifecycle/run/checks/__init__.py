"""What a run checks beside its plan: expectations, other readers of its files, what it replaces, runs not known.

expectation   what the script expects of its data; one that fails blocks the commit
other_use     which other jobs and contexts have yet to read files that are to be deleted or archived
replacement   what an overwrite removes of living runs, and whether all of it is read again
replayable    which runs can be made again, and what stands against it
unknown_run   whether the target of a first run holds files of runs that the store does not know
"""

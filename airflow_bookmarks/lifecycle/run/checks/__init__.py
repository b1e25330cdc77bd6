"""What a run checks beside its plan: expectations, other readers, what it replaces, where it leads, unknown runs.

expectation   what the script expects of its data; one that fails blocks the commit
other_use     which other jobs and contexts have yet to read files that are to be deleted or archived
replacement   what an overwrite removes of living runs, and whether all of it is read again
replayable    which runs can be made again, and what stands against it
going_on      whether a batch of a source of one's own leads on, so that a loop of batches ends
unknown_run   whether the target of a first run holds files of runs that the store does not know
"""

"""The kinds of run: enabled, replayed, detached, empty; `session` is the protocol that all of them follow.

session, environment        what each run offers, and where it works
enabled, replay, empty      runs that hold the job's lease
detached, detached_publish  paused and disabled runs, which hold none
inputs, outputs, recording  what a run knows of what it reads and writes, and the members that only record it
commit_preparation          what a commit is built from: of the run itself, or of one that it has taken over
commit_builder              what a commit writes, as a pure function
checks                      what a run checks beside its plan
"""

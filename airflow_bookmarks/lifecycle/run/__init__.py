"""The kinds of run: enabled, replayed, detached, empty; `session` is the protocol that all of them follow.

session, environment        what each run offers, and where it works
enabled, replay, empty      runs that hold the job's lease
leased, holding             the job as such a run holds it, and the members that pass it on
detached, side              paused and disabled runs, which hold none, and what they alone have
use                         what a run knows of what it reads and writes
commit_preparation          what a commit is built from: of the run itself, or of one that it has taken over
commit_builder              what a commit writes, as a pure function
checks                      what a run checks beside its plan
"""

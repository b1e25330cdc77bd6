"""The kind `upstream`: the published output of other jobs, run by run.

kind, source        what the registry knows of it, and the planner
job                 the job that is read, as its consumer finds it in the store
position            where a consumer stands, and where a plan leads
selection           which runs, and which output, a window covers
rewind, way_back    what was undone or replayed since it was read, and how a consumer goes back
written, layout     how runs have written the output, and whether one frame can read them together
listing             the files of these runs that are there to be read
stored_plan         how the output that a stored plan reads was written
"""

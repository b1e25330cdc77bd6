"""The executable model of the commit protocol: every interleaving, each end judged. README.md says what is modelled.

state          the world at one moment: head, runs, files, tables, drivers
rules          the rules of the protocol that can be switched off, by name
configuration  which drivers, sinks and events a search has, its first state, its names of places and files
searches       the lists of searches: the main ones, the big ones, one for each rule that is switched off
turn           the turn of one driver: what a step sees, and the moves that it offers
driver         the steps of a driver, by name: begin, plan, place, read, stage, commit
recovery       recover: finish a clean, find what is due, settle open runs
own_sink       the sink that commits by itself: burn, look, write
second_sink    a second sink that commits by itself, and the person who decides about a run that is in one of both
stage_table    the stage table of a database: load, count, publish by one transaction, drop
publication    publish, mark, sweep
environment    what happens around the drivers: files, kills, resets and rewinds
ending         what must hold at each moment, and after fresh drivers ran to the end
search         breadth first over all of it, with the trace of a violation
consumer       a second, smaller model: a consumer of a job that is rewound and replayed
"""

"""What would make a job cheaper, from what its runs have recorded: rules without I/O.

advice    one advice: what it is about, the evidence, its measured cost, and what to do
reads     what the last runs have read of a source of files, by partition
cost      what listing has cost these runs, as figures and in words
folders   rules on folders: their depth, the width of a partition, the order of partitions, reads without a filter
tables    rules on tables that are read by key: nullable keys, keys that are updated
"""

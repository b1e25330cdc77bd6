"""What scripts read: options of Glue's reads in ours, and the frame of each source.

read           the door: `read_options` and `read_catalog`
options        options of reads, as scripts and parameters of tables write them
formats        format options as options of Spark's formats
frames         a frame of planned files, under a bookmark or whole
tables         a table of the catalog whose rows lie in files
partitions     a predicate over the values of partitions
folders        partitions that folders tell of, where a script gives a predicate and no catalog lists any
documents      text as JSON records
listing_lines  what is read of each partition, in the lines that Glue logs
database       a table of a database
dynamodb       a table of DynamoDB, whole
"""

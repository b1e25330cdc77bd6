"""What becomes of the outputs of a run, for each kind of sink, from the stored output alone. No Spark.

    sink       the two kinds of sink: staged ones, and those that commit by themselves
    registry   one object per kind; recovery asks it by the kind that is stored with an output
    failure    what a user's own sink raises, with the output that it failed for
    entry      the output as a commit stores it, built from what was staged
    clean      what a clean removes, as it is stored, and the sinks that can be cleaned
    reaching   open the database of an address, and say what stays as it is where that fails
    staging    what a script asks a sink to stage, and what it has staged
    files/     the sink of files: staged in a folder, published by moves
    jdbc/      the sink of tables: staged in a table, published by a transaction
    redshift/  the sink of tables of Redshift: staged in files, loaded by a transaction
    delta/     the sink of Delta tables: lands by itself, in one commit of the table
    iceberg/   the sink of Iceberg tables: staged in a snapshot, brought into the table after the commit

The DataFrame is written by `spark/sinks`; what is here needs no script.
"""

"""Run scripts that were written for AWS Glue, unmodified, on any classic Spark session.

    run         the one current run of a session: its job, its counts, what it gives back at its end
    settings    what the conf says of this layer: `spark.bookmarks.glue.*`
    arguments   `getResolvedOptions`, with Glue's rules
    job         `Job`: init and commit
    names       any text as a name that the runtime allows, and back
    errors      what is out of reach, and what to do instead
    scratch     folders for rows that a run fixes for its own use
    classic     the check that the session is a classic one
    metrics     the counts of a run as metrics of CloudWatch
    listing_log the lines that Glue logs of partitions and their files
    context     `GlueContext`, and how it reads and writes
    dynamic     `DynamicFrame`, its types and choices
    transforms  `awsglue.transforms`
    inputs      what scripts read
    catalogs    the Data Catalog, Spark's catalog, and connections
    outputs     what scripts write and purge
    bookmarks   bookmarks in the shape of Glue's API
    inventory   what a script needs of Glue, read without running it
    __main__    the commands: where this layer is, what scripts need, bookmarks as Glue shows them
    watermarks  the class `Watermarks`, which keeps what a script has read itself
    path        the folder for PYTHONPATH: `awsglue`, and `scripts.helpers.watermarks`

The behaviour follows AWS's documentation. This module imports nothing, so that a worker without Spark can import it.
"""

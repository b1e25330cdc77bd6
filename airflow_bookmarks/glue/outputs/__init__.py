"""What scripts write and purge: options of Glue's writes in ours.

write       `write_dynamic_frame` in all its forms: to which kind of output a call goes
options     what a script gives in its dicts, by Glue's names
database    tables of a database
files       files on S3, HDFS and this machine
formats     Glue's formats and their options, as Spark's writer has them
rows        what a sink takes of a frame: choices, columns of nulls
parquet     what `glueparquet` holds to: no file without rows, no other type of a column
registration  tables of a catalog that writes make and widen
purge       `purge_s3_path` and `purge_table`
"""

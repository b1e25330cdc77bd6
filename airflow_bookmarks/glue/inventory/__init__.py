"""What scripts need of Glue, read from their source without running it.

surface  what a script may use of Glue, by name: what is supported, what needs a word, what is out of reach
source   the source of one script: its imports, its calls, and what is known of their arguments
finding  one thing that a person may have to know of a script
targets  paths and tables that a script writes to whatever its arguments say
reading  the rules: from the source of a script to what it needs
absent   the import of a transform of Glue Studio says what to do instead
report   scripts and folders read, and what is said of them

Rules about what runs, and may lose or double rows:

spark_writes  writes by Spark itself, which are no part of the commit
swallowed     errors around reads and writes that the script catches, and goes on
in_place      a folder or table that is read, purged and written
"""

"""What frames do with their fields.

path     paths as scripts write them
rewrite  columns made anew where something in them changes
shape    fields that are kept, left out, renamed, or given the types of a schema
merge    one schema for rows of several
resolve  `resolveChoice`, and the options of `toDF`
"""

"""`awsglue.transforms`: what scripts make of a frame, as classes that are called with `apply`.

methods        the transforms as methods of a frame
transform      what all classes share
classes        the classes, each of which calls a method
apply_mapping  fields chosen, renamed, nested and cast
records        functions over records: map, mapPartitions, filter
failure_count  how many records a filter has failed on
join           join, and mergeDynamicFrame
nesting        unnest, and what takes the types of DynamoDB out of an export
relational     relationalize
unbox          text of a format, parsed where it stands
split          split_rows
spigot         a sample, written beside the job
typed_column   a column or a part of one, with its type
"""

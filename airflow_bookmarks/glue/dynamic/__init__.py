"""`DynamicFrame`: rows whose columns may hold values of several types, and what makes one.

frame          `DynamicFrame`, as scripts know it
base           what a frame holds, and how transforms make one frame of another
collection     `DynamicFrameCollection`, frames by name
types          the types, under the names of `awsglue.gluetypes`
choice         choices in a DataFrame: marked structs
declared       types that a catalog declares over columns of text
cast           casts without errors
shapes         the shape of JSON, and what it leaves open
fields         paths to fields, and what is done with them
variants       JSON with choices, read once
records        the record form: dicts in Python
parsed_records JSON on a Spark that has no variants
error_records  what could not be read or made
"""

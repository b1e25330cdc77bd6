"""Records of JSON whose types differ, as a frame with choices.

json_frame      which of the following ways reads them
texts           their texts with their shapes: parsed once, and looked at
typed_texts     by Spark's parser, where their shapes tell all types
variants        by Spark's variants, where something is open: looked at, and taken apart
parsed_records  by Python, where Spark has no variants or does not take a text
shapes          what Spark says of the types in a record, and what it leaves open
variant_columns the columns that a record is taken apart into
"""

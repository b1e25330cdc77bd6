"""Records of JSON whose types differ, as a frame with choices.

variants        by Spark's variants: parsed once, looked at, and taken apart
shapes          what Spark says of the types in a variant, and what it leaves open
variant_columns the columns that a variant is taken apart into
parsed_records  by Python, where Spark has no variants or does not take a text
"""

"""Transfer: bookmarks out of one table and into another, and as Glue shows them.

document    the format that an export writes and an import reads
exporting   bookmarks as one document
importing   a document into a store
landing     what an import keeps of a document, and what it leaves out
glue_entry  one bookmark in Glue's format, to look at
"""

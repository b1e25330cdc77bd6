"""Files as frames, beyond what a plan of folders needs.

listed       partitions that a catalog lists: their values are columns
own_headers  files of CSV, each by its own header
whole        files read whole, without a job
"""

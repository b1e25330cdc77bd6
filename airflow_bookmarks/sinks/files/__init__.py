"""The sink of files: staged in a folder, published by moves, swept as folders.

sink       the object of the kind
publish    the moves, then the deletes
changes    every path checked to be the job's own before the first one is touched
"""

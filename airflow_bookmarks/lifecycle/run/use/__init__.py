"""What a run knows of what it reads and writes, without a store.

inputs, outputs  the contexts and outputs of one run
recording        the members of every run that only record them
"""

"""Which of the files that are there a run reads: patterns, predicates, partitions, sequences, bounds."""

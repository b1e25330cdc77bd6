"""Select which of the present files a run reads: patterns, predicates, partitions, sequences, bounds."""

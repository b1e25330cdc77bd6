"""Windows of a table: which rows a run reads, where that has to end, and into which parts it is split."""

"""Read-only views of the state: status, runs, pending, lag, graph, waiting."""

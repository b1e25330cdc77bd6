"""Looks at the state that change nothing: status, runs, pending, lag, graph, waiting."""

"""A deterministic simulator: one seed is one world in which the real store, lifecycle and ledger run.

Only clock, randomness, sleep, table and file system are simulated. `python -m tests.chaos.sim --help`.
"""

"""Bites: deliberate faults in the real code, each of which the simulator must find. `python -m tests.chaos.bites`."""

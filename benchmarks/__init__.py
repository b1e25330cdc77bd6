"""What the package costs, measured side by side with what it is compared to, in one run.

Example:
    $ python -m benchmarks.store
"""

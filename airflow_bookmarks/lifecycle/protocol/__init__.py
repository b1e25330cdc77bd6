"""The commit protocol, step by step: acquire, recover, stage, publish, clean up, finish."""

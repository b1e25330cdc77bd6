"""The model and the rules: option, job, run, plan, position, ledger, errors. No I/O."""

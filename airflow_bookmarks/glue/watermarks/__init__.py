"""Watermarks that a script keeps itself, in a DynamoDB table of its own: `from scripts.helpers.watermarks import ...`.

table   the class `Watermarks`: what a script calls
kept    what a run has added, until its commit
values  values as DynamoDB stores them, each with its type
finder  the import of `scripts.helpers.watermarks` beside a project's own `scripts`
"""

"""The sink of tables: rows in a stage table of the same database, brought into the target by one transaction.

place         where an output is staged and what it goes to, as state keeps it
columns       what the target takes of a frame, before anything is staged
loading       the stage table while a driver loads it: made, sealed, counted
publish       the transaction
examination   what `doctor` looks at: token row, stage table, target
sink          the kind `jdbc`
"""

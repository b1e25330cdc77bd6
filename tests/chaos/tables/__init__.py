"""Drivers that write to files and to two tables of a database in one run, killed and cut off at each step.

order    what a driver process, or a worker without Spark, is told to do
driver   the process
scene    raw files, the three targets, and the store
"""

"""Predicates on partition columns in Spark's SQL, evaluated on paths without Spark, before folders are listed.

    year = 2013 and (month >= 9 or month is null) and region not in ('xx', 'yy')

An evaluation tells all outcomes that are possible. A column may not be known yet (it lies deeper in the path), or its
type may not (no run has settled it): then there are several, and a folder is left out only where none of them is true.
"""

"""Many writers whose transactions end out of the order of their keys, and readers who must lose no row of them.

table.py        the tables, and what is in them at the end
transaction.py  one random transaction of each kind of database
writers.py      many of them at a time, and who ends what they have prepared
reader.py       bookmarked runs that are killed and made again, until nothing is left
plain.py        the plain way, by the greatest key so far, for comparison
race.py         all of it together, and its figures
"""

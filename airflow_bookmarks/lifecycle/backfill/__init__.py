"""A job and everything downstream of it go back together.

plan        look at all of them: what each would undo, read again and clean, and what can't be
carry_out   make the changes, one job after the other, in the order of the data
"""

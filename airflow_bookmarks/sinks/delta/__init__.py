"""The kind `delta`: a run's rows land in a Delta table in one commit of that table, under a token of the run.

token      what tells the commit of a run from any other: an application id, a number, and a text in the history
target     the table that an output goes to, and what state keeps of it
tables     what the sink asks of Delta; the driver's Spark session answers
sink       burn, and look for what has landed
"""

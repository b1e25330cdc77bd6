"""`awsglue.functions`: nothing in it is documented, and no script that we know takes a name from it."""

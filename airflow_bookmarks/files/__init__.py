"""What is in a folder: list, stat, open, move and delete on local disk and object stores. No Spark."""

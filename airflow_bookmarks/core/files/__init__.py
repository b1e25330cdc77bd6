"""What is stored of files: the plans that name them, and the lists of what a publish moves and deletes."""

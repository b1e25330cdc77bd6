"""The file systems of Hadoop beside S3 and the local one."""

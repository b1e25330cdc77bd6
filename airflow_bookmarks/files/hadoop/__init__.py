"""Hadoop's file systems besides S3 and the local one."""

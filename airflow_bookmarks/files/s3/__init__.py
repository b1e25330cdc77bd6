"""Objects in S3, and in stores that speak like it."""

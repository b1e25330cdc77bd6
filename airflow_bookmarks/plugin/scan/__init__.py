"""Read files for the page, in a child process with limits."""

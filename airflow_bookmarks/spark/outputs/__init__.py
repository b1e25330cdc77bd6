"""From what a script asks of an output to what is staged of it, by kind of sink: `job.write(df, name)...`."""

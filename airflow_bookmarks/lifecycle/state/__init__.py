"""What a run keeps of a job and reports: positions, `job.state`, quarantine, summary."""

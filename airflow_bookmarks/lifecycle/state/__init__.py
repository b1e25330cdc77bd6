"""What a run keeps of a job and tells of itself: positions, `job.state`, quarantine, summary."""

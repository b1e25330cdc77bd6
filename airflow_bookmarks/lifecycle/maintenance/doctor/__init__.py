"""Check the stored state of jobs, describe what is wrong, and repair what can be repaired safely.

`examine` reads and changes nothing. `repair` does what a finding says under `repair`; it never touches a position.

- `survey`: everything that the table says of one job, read once
- `examination`: all looks at a survey, in their order; `finding`: what one of them found; `repair`: what mends it
- `head`: numbers, lease, what is due, and the entry in the index of jobs
- `history`: lines and runs
- `request`: requests for changes that a second person approves
- `context`: positions, edges to upstreams, gaps, partitions and unknown kinds
- `payload`: stored bytes, and who may read the file that holds them
- `target`: published files, staging, and paths that are not the job's own
- `sink`: outputs in sinks that tell what lies in them, such as tables
- `advice`: no damage, but what makes runs dearer than they need be
"""

from airflow_bookmarks.lifecycle.maintenance.doctor.advice import JobAdvice, advise
from airflow_bookmarks.lifecycle.maintenance.doctor.examination import examine
from airflow_bookmarks.lifecycle.maintenance.doctor.finding import Finding, Severity
from airflow_bookmarks.lifecycle.maintenance.doctor.repair import Repaired, repair

__all__ = ["Finding", "JobAdvice", "Repaired", "Severity", "advise", "examine", "repair"]

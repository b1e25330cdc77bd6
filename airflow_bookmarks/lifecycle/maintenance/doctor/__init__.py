"""Doctor: proves the stored state of jobs, names in words what is wrong, and mends what can be mended safely.

`examine` reads and changes nothing. `repair` does what a finding says under `repair`; it never touches a position.
"""

from airflow_bookmarks.lifecycle.maintenance.doctor.examination import examine
from airflow_bookmarks.lifecycle.maintenance.doctor.finding import Finding, Severity
from airflow_bookmarks.lifecycle.maintenance.doctor.repair import Repaired, repair

__all__ = ["Finding", "Repaired", "Severity", "examine", "repair"]

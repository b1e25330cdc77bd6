"""The document that an export of a job answers with."""

from typing import Any

from airflow_bookmarks.plugin.schemas.responses import ResponseModel


class ExportedJobs(ResponseModel):
    """All that is stored of a job, or of the virtual shards of one, as `airflow-bookmarks import` reads it.

    `jobs` has the items of each by name, `blobs` what they name, as Base64, and `artifacts` the folders that belong to
    their positions and stay where they are. `states` is what people see of `job.state`.
    """

    format: int
    exported_at: str
    table_made_at: str | None
    package_version: str
    namespace: str
    jobs: dict[str, Any]
    blobs: dict[str, str]
    artifacts: dict[str, list[str]]
    states: dict[str, Any]

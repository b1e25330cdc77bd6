"""Answers about files that are set aside because they can't be parsed."""

from airflow_bookmarks.plugin.schemas.responses import ResponseModel


class QuarantinedFileRow(ResponseModel):
    """A file that is set aside: the run that found it, and the error in up to 300 characters, without data."""

    ctx: str
    path: str
    bytes: int
    modified_at: str
    run_number: int
    error: str


class QuarantinedFiles(ResponseModel):
    """A page of the files that a job has set aside, by context and path; `total` counts all of them."""

    files: list[QuarantinedFileRow]
    total: int
    limit: int
    offset: int

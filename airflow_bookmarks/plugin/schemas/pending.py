"""What the next run of a job would read, and leave out."""

from airflow_bookmarks.plugin.schemas.responses import ResponseModel


class SkippedFile(ResponseModel):
    """A file that the next run would leave out, and the word for the reason."""

    ctx: str
    reason: str
    path: str
    bytes: int
    modified_at: str


class PendingRow(ResponseModel):
    """What is new in one context; None where it is not known.

    `skipped` counts what would be left out, by reason, and `skipped_files` are examples: up to ten files of each
    reason. Some reasons have counts alone, and so has what a run recorded.

    With `recorded_by` its folders were not looked at: the figures are what that run left waiting at the time of
    `recorded_at`, and what came since is not known. What is not counted in files has a `count` of its `unit`.
    """

    ctx: str
    kind: str
    source: str
    files: int | None
    bytes: int | None
    oldest: str | None
    newest: str | None
    skipped: dict[str, int]
    skipped_files: list[SkippedFile] = []
    read_again: int | None
    unknown: str | None
    recorded_by: int | None = None
    recorded_at: str | None = None
    upstream: str | None = None
    runs: list[int] | None = None
    rows: int | None = None
    unit: str | None = None
    count: int | None = None


class Pending(ResponseModel):
    """What the next run would read, and finish first, as looked up at `looked_at`. None where it is not known."""

    job: str
    namespace: str
    looked_at: str
    is_empty: bool
    is_known: bool
    unknown: str | None
    files: int | None
    bytes: int | None
    contexts: list[PendingRow]
    due_run_number: int | None
    cleaning: bool
    left_open: list[str]
    holder: str | None

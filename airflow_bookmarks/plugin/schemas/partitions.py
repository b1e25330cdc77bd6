"""Answers about the parts of sources that runs read one by one."""

from airflow_bookmarks.plugin.schemas.responses import ResponseModel


class PartitionRow(ResponseModel):
    """What runs of the living history have read of one part.

    `files` and `rows` are None where they are not known of one of its runs; `amounts` has by its unit what is not
    counted in files. `position` is how far the last of them went, in words. `failed_since` is when the first run behind
    planned the part and did not commit it, with the `error` of the newest; None: none.
    """

    ctx: str
    partition: str
    runs: int
    files: int | None
    rows: int | None
    amounts: dict[str, int | None]
    position: str | None
    last_run: int | None
    committed_at: str | None
    failed_since: str | None
    error: str | None


class PartitionList(ResponseModel):
    """The parts that the newest `runs` runs have read, those that fail first."""

    partitions: list[PartitionRow]
    runs: int

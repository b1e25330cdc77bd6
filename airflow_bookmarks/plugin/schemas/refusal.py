"""What is answered where something is refused."""

from airflow_bookmarks.plugin.schemas.responses import EventRow, ResponseModel, RunRow


class Wrong(ResponseModel):
    """What is wrong with a part of a request."""

    where: str
    what: str


class Seen(ResponseModel):
    """A watermark as it was seen (None also where that is not known any more), and as it is now."""

    seen: str | None
    now: str | None


class Difference(ResponseModel):
    """What happened to a job since the version that was previewed."""

    version_seen: int
    version_now: int
    epoch_now: int
    run_number_now: int
    runs: list[RunRow]
    events: list[EventRow]
    watermarks: dict[str, Seen]


class Refusal(ResponseModel):
    """Why something was not done: the name of the error, and what to do."""

    error: str
    message: str
    wrong: list[Wrong] | None = None
    difference: Difference | None = None

"""What a job depends on, and what depends on it."""

from airflow_bookmarks.plugin.schemas.responses import LagRow, ResponseModel


class GraphNode(ResponseModel):
    """A job, or a source that is none."""

    name: str
    kind: str
    run_number: int | None
    published: int | None
    is_known: bool
    is_deleted: bool
    is_damaged: bool
    other_names: list[str]


class GraphRead(ResponseModel):
    """A job reads a source."""

    job: str
    source: str
    contexts: list[str]
    lag: LagRow | None


class Graph(ResponseModel):
    """What a job depends on, and what depends on it. `hidden` counts the jobs of it that the user may not look at."""

    namespace: str
    nodes: list[GraphNode]
    reads: list[GraphRead]
    hidden: int


# ---- changes

"""Name the output for which a sink of a user's own fails, and say what becomes of it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import BookmarkError, SourceError
from airflow_bookmarks.core.run import FILES_SINK
from airflow_bookmarks.own_kind import errors_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

JDBC_SINK = "jdbc"  # the kind of sink whose outputs are tables of a database
DELTA_SINK = "delta"  # the kind of sink whose outputs are Delta tables
ICEBERG_SINK = "iceberg"  # the kind of sink whose outputs are Iceberg tables
REDSHIFT_SINK = "redshift"  # the kind of sink whose outputs are tables of Redshift, loaded through files in S3

_OURS = frozenset({FILES_SINK, JDBC_SINK, DELTA_SINK, ICEBERG_SINK, REDSHIFT_SINK})


def own_errors(kind: str) -> AbstractContextManager[None]:
    """Raise a `SourceError` for whatever a kind of a user's own raises within the block; see `errors_of`.

    Where it fails alone: a look at many outputs says what is wrong with this one, and a sweep is left to the next run.
    """
    return errors_of(kind, _OURS, "kind of sink")


@contextmanager
def named_failure(
    kind: str, asked: object, then: str | Callable[[], str], raised: type[BookmarkError] = SourceError
) -> Iterator[None]:
    """Raise what a kind of a user's own raises within the block with what it was asked about, and what happens next.

    `asked` names job and output; `then` says what was left untouched, and what to do, or returns that. The block is a
    call of the kind, and no more. Errors of this package pass as they are, but for a `SourceError`, by which a kind
    says that its place is out of reach.

    Raises:
        BookmarkError: one of the class `raised`: the kind has failed.
    """
    try:
        with own_errors(kind):
            yield
    except SourceError as error:
        if kind == FILES_SINK:
            raise
        next_step = then if isinstance(then, str) else then()
        raise raised(f"{asked}: {str(error).rstrip('.')}. {next_step}") from error

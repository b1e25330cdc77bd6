"""Kinds of a user's own: by the entry points of installed packages, an object of each is made when it is asked for.

Whatever such a kind raises is an error of its own source or sink, and no fault of this package.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, TypeVar

from airflow_bookmarks.core.errors import BookmarkError, SourceError
from airflow_bookmarks.core.text.cause import cause_of
from airflow_bookmarks.core.text.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

log = logging.getLogger(__name__)

K = TypeVar("K")


def load_kind(group: str, name: str, named: Callable[[object], dict[str, K]]) -> tuple[K | None, str | None]:
    """Return the kind that an installed package names, and why it can't be had; both None where none names it.

    The value of an entry point is a class that is made without arguments. `named` returns an object by its own name,
    and nothing for what is no kind of this group. Whoever calls this keeps the answer: each call imports again what
    could not be imported.
    """
    points = {point.value: point for point in entry_points(group=group, name=name)}
    if not points:
        return None, None
    called = f"The entry point {name!r} of the group {group!r} ({', '.join(sorted(points))})"
    if len(points) > 1:
        return None, f"{called} is that of several packages: remove all but one."
    try:
        (point,) = points.values()
        kind = named(point.load()()).get(name)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (a user's module: only its own kind is refused for it)
        why = f"{called} can't be loaded: {redacted(cause_of(error))}. Mend it, and restart this process."
        log.warning("%s What is stored of this kind is not known in this process.", why)
        return None, why
    return (None, f"{called} is no class of a kind with that name.") if kind is None else (kind, None)


@contextmanager
def errors_of(name: str, ours: Collection[str], called: str) -> Iterator[None]:
    """Raise a `SourceError` for whatever a kind of a user's own raises within the block beside errors of this package.

    So a look at many contexts or outputs says what is wrong with this one, and goes on with the others. What a kind of
    this package raises besides is a fault of the package, and stays what it is: so the block is a call of the kind, and
    no more.

    Args:
        name: the name of the kind.
        ours: the names of the kinds of this package.
        called: what its registry calls it, for the message: "kind", "kind of sink".

    Raises:
        SourceError: the kind has raised something of a class of its own, or of Python's.
    """
    try:
        yield
    except BookmarkError:
        raise
    except Exception as error:  # a user's module, which may raise anything: only its own parts are not known for it
        if name in ours:
            raise
        raise SourceError(f"the {called} {name!r} failed: {redacted(cause_of(error))}") from error

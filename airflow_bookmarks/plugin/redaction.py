"""Redact answers about one job: hide the names of other jobs that the user may not see.

The upstreams and consumers of a job appear in many places of its record: contexts, plans of runs, previews of requests.
So the whole answer is searched, not only the places known today.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_bookmarks.lifecycle.inspect.graph import JOB
from airflow_bookmarks.lifecycle.inspect.lag import Neighbours
from airflow_bookmarks.plugin.schemas.responses import ResponseModel
from airflow_bookmarks.sources.registry import reads_jobs, upstream_in, upstream_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from airflow_bookmarks.core.run import ContextState
    from airflow_bookmarks.plugin.auth import UserScope
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

HIDDEN = "(hidden)"  # no job can have this name

# Texts in which a job may be named; all else that is text comes from people, and says what they wrote.
_TEXTS = ("source", "position", "upstream", "why", "unknown", "error", "job")
_BEFORE, _AFTER = r"(?<![\w.~-])", r"(?![\w~-]|\.[\w~-])"  # a full stop ends a sentence, or goes on in a name

_Answer = TypeVar("_Answer", bound=ResponseModel)


def with_names_hidden(
    store: BookmarkStore, scope: UserScope, answer: _Answer, contexts: Mapping[str, ContextState] | None = None
) -> _Answer:
    """Return an answer about a job that may be looked at, without the names of jobs that may not.

    Args:
        store: where it is looked up whose the named jobs are.
        scope: what the user may look at.
        answer: what is to be told.
        contexts: of the job; what it reads is looked for in texts as well.
    """
    result = answer.model_dump()
    reads = {name for state in (contexts or {}).values() if (name := upstream_of(state)) is not None}
    hidden = hidden_from(store, scope, sorted({*_named(result), *reads}))
    if not hidden:
        return answer
    return type(answer).model_validate(_without(result, hidden, _any_of(hidden)))


def names_hidden_in(store: BookmarkStore, scope: UserScope, answer: Mapping[str, Any], jobs: Iterable[str]) -> set[str]:
    """Return the names of jobs that a user may not look at, of those that an answer names and of the neighbours."""
    return hidden_from(store, scope, sorted({*_named(answer), *(name for job in jobs for name in _near(store, job))}))


def text_with_names_hidden(store: BookmarkStore, scope: UserScope, said: str, jobs: Iterable[str]) -> str:
    """Return what an error says of jobs that may be looked at, without the names of neighbours that may not."""
    near = {name for job in jobs for name in _near(store, job)}
    hidden = hidden_from(store, scope, sorted(name for name in near if name in said))
    return without_names(said, hidden)


def without_names(said: str, hidden: Iterable[str]) -> str:
    """Return a text without the names of some jobs."""
    names = frozenset(hidden)
    return _any_of(names).sub(HIDDEN, said) if names else said


def _near(store: BookmarkStore, job: str) -> set[str]:
    """Return the jobs that read a job, and those that it reads."""
    reads = Neighbours.of_job(store, job).reads[job].values()
    return {edge.consumer for edge in store.edges(job)} | {
        name for state in reads if (name := upstream_of(state)) is not None
    }


def _any_of(names: Iterable[str]) -> re.Pattern[str]:
    # The longest first, as one name may begin like another.
    either = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.compile(f"{_BEFORE}(?:{either}){_AFTER}")


def hidden_from(store: BookmarkStore, scope: UserScope, jobs: list[str]) -> set[str]:
    """Return those of some jobs that a user may not look at."""
    entries = store.index_entries(jobs)
    return {job for job in jobs if not scope.sees(entries.get(job))}


def _named(result: Any) -> Iterator[str]:
    """Yield the other jobs that an answer names as such."""
    if isinstance(result, list):
        for each in result:
            yield from _named(each)
    elif isinstance(result, dict):
        yield from _named_in(result)
        for each in result.values():
            yield from _named(each)


def _named_in(result: Mapping[str, Any]) -> Iterable[str]:
    source, upstream, consumers = result.get("source"), result.get("upstream"), result.get("consumers")
    if isinstance(source, str):
        read = upstream_in(source)
        if read is not None:
            yield read
        elif result.get("kind") == JOB or reads_jobs(str(result.get("kind"))):
            yield source
    if isinstance(upstream, str):
        yield upstream
    elif isinstance(upstream, dict) and isinstance(upstream.get("job"), str):
        yield upstream["job"]
    if isinstance(consumers, dict):
        yield from consumers
    elif isinstance(consumers, list):
        yield from (name for name in consumers if isinstance(name, str))


def _without(result: Any, hidden: set[str], pattern: re.Pattern[str]) -> Any:
    if isinstance(result, list):
        return [_without(each, hidden, pattern) for each in result]
    if not isinstance(result, dict):
        return result
    left = {key: _without(each, hidden, pattern) for key, each in result.items()}
    for key in _TEXTS:
        if isinstance(left.get(key), str):
            left[key] = pattern.sub(HIDDEN, left[key])
    if isinstance(left.get("consumers"), dict) and hidden & left["consumers"].keys():
        left["consumers"] = {job: run for job, run in result["consumers"].items() if job not in hidden}
        left["hidden_consumers"] = len(result["consumers"]) - len(left["consumers"])
    if isinstance(left.get("consumers"), list):
        left["consumers"] = [HIDDEN if name in hidden else name for name in left["consumers"] if isinstance(name, str)]
    return left

"""The graph of jobs: which job reads what, how far, and whether it keeps up; as a value, a tree or a Mermaid diagram.

It is made from the heads, so a namespace of a thousand jobs takes some twenty requests, without a query for each job
(`lag.Neighbours`). No folder is listed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import JobUnknownError
from airflow_bookmarks.core.rules.lag import LagState
from airflow_bookmarks.core.text.escaping import escaped
from airflow_bookmarks.lifecycle.inspect.lag import Neighbours, readable_lags
from airflow_bookmarks.sources.registry import upstream_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from airflow_bookmarks.lifecycle.inspect.lag import Lag
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

JOB, SOURCE = "job", "source"

_QUOTED = {'"': "#quot;", "#": "#35;", "<": "#lt;", ">": "#gt;", "\n": " "}


@dataclass(frozen=True, slots=True)
class Node:
    """A job, or another source, such as a folder, described by its fingerprint.

    `is_known` is false for a job that others read and that has no bookmark; `is_deleted` is true for one that was
    deleted and has not run since; `is_damaged` for one whose state can't be read, so that its inputs are unknown.
    """

    name: str
    kind: str
    run_number: int | None = None
    published: int | None = None
    is_known: bool = True
    is_deleted: bool = False
    is_damaged: bool = False
    other_names: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The name, with remarks on the node."""
        said = [f"also {', '.join(self.other_names)}"] if self.other_names else []
        said += ["deleted"] if self.is_deleted else []
        said += ["damaged"] if self.is_damaged else []
        said += [] if self.is_known else ["no bookmark"]
        return f"{self.name} ({'; '.join(said)})" if said else self.name

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {**values, "other_names": list(self.other_names)}


@dataclass(frozen=True, slots=True)
class ReadEdge:
    """`job` reads `source` (both nodes) by some contexts. `lag` says how it keeps up with a job; else None."""

    job: str
    source: str
    contexts: tuple[str, ...]
    lag: Lag | None = None

    @property
    def label(self) -> str:
        """The state, and the unread amount."""
        if self.lag is None:
            return ""
        behind = f", {self.lag.runs} run{'' if self.lag.runs == 1 else 's'} behind" if self.lag.runs else ""
        return f"{self.lag.state}{behind}"

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        lag = None if self.lag is None else self.lag.as_dict()
        return {"job": self.job, "source": self.source, "contexts": list(self.contexts), "lag": lag}


@dataclass(frozen=True, slots=True)
class JobGraph:
    """Jobs and what they read: `nodes` by name, `reads` by job and source."""

    namespace: str
    nodes: Mapping[str, Node] = field(default_factory=dict)
    reads: tuple[ReadEdge, ...] = ()

    def reads_of(self, job: str) -> tuple[ReadEdge, ...]:
        """Return the reads of a job."""
        return tuple(read for read in self.reads if read.job == job)

    def around(self, job: str) -> JobGraph:
        """Return the part of the graph that a job depends on or that depends on it, at any distance.

        Raises:
            JobUnknownError: no such node.
        """
        if job not in self.nodes:
            raise JobUnknownError(
                f"no bookmark named {job!r} in namespace {self.namespace!r}. 'airflow-bookmarks list' shows those that "
                "are."
            )
        above = _closure(job, ((read.job, read.source) for read in self.reads))
        below = _closure(job, ((read.source, read.job) for read in self.reads))
        kept = above | below
        # A job below may read others that have nothing to do with this one; these are left out.
        reads = tuple(
            read for read in self.reads if {read.job, read.source} <= above or {read.job, read.source} <= below
        )
        return JobGraph(self.namespace, {name: node for name, node in self.nodes.items() if name in kept}, reads)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "namespace": self.namespace,
            "nodes": [node.as_dict() for node in self.nodes.values()],
            "reads": [read.as_dict() for read in self.reads],
        }

    def as_text(self) -> str:
        """Return a tree for each job that no other reads, with its inputs below it.

        What was shown before is marked `(*)` and not expanded again, as in `cargo tree`; so a cycle ends too.
        """
        shown: set[str] = set()
        lines: list[str] = []
        for root in self._roots():
            if root not in shown:
                lines += self._tree(root, shown)
        return "\n".join(lines)

    def as_mermaid(self) -> str:
        """Return a flowchart in Mermaid's language, in the direction of the data."""
        ids = {name: f"n{number}" for number, name in enumerate(self.nodes)}
        lines = ["flowchart LR"]
        for name, node in self.nodes.items():
            left, right = ("[", "]") if node.kind == JOB else ("[(", ")]")
            lines.append(f'    {ids[name]}{left}"{_quoted(node.label)}"{right}')
        for read in self.reads:
            arrow = f'-->|"{_quoted(read.label)}"|' if read.label else "-->"
            lines.append(f"    {ids[read.source]} {arrow} {ids[read.job]}")
        bad = [ids[r.job] for r in self.reads if r.lag is not None and r.lag.state is not LagState.OK]
        if bad:
            lines.append("    classDef behind stroke:#c00,stroke-width:2px")
            lines.append(f"    class {','.join(dict.fromkeys(bad))} behind")
        return "\n".join(lines)

    def _roots(self) -> Iterator[str]:
        jobs = [name for name, node in self.nodes.items() if node.kind == JOB]
        read = {each.source for each in self.reads}
        yield from (name for name in jobs if name not in read)
        yield from jobs  # those of a cycle that no other job reads

    def _tree(self, root: str, shown: set[str]) -> list[str]:
        lines: list[str] = []
        # A list instead of a recursion: a chain of jobs may be longer than Python's stack.
        open_: list[tuple[str, str, str, ReadEdge | None]] = [(root, "", "", None)]
        while open_:
            name, lead, below, read = open_.pop()
            node, reads = self.nodes[name], self.reads_of(name)
            state = f"  [{read.label}]" if read is not None and read.label else ""
            is_again = name in shown and bool(reads)
            lines.append(f"{lead}{escaped(node.label)}{state}{' (*)' if is_again else ''}")
            if is_again:
                continue
            shown.add(name)
            for number, each in reversed(list(enumerate(reads))):
                is_last = number == len(reads) - 1
                branch, rest = ("└── ", "    ") if is_last else ("├── ", "│   ")
                open_.append((each.source, below + branch, below + rest, each))
        return lines


def graph(store: BookmarkStore, job: str | None = None) -> JobGraph:
    """Return the graph of a namespace; with `job` (a key), only what it depends on and what depends on it.

    Raises:
        JobUnknownError: no such bookmark.
    """
    looked = Neighbours.of_all(store)
    known = [each for lags in readable_lags(looked).values() for each in lags]
    reads = [ReadEdge(each.job, each.source, each.contexts, each) for each in known if each.source]
    reads += _reads_of_sources(looked)
    reads.sort(key=lambda read: (read.job, read.lag is None, read.source))
    unreadable = {*looked.damaged, *(each.job for each in known if not each.source)}
    found = JobGraph(store.namespace, _nodes(looked, reads, unreadable), tuple(reads))
    return found if job is None else found.around(job)


def _reads_of_sources(looked: Neighbours) -> list[ReadEdge]:
    contexts: dict[tuple[str, str], list[str]] = {}
    for job in looked.jobs:
        for ctx, state in sorted(looked.reads[job].items()):
            if upstream_of(state) is None:
                contexts.setdefault((job, state.fingerprint), []).append(ctx)
    return [ReadEdge(job, source, tuple(names)) for (job, source), names in contexts.items()]


def _nodes(looked: Neighbours, reads: Iterable[ReadEdge], unreadable: Collection[str]) -> dict[str, Node]:
    names = {*looked.jobs, *unreadable, *(read.source for read in reads if read.lag is not None)}
    nodes: dict[str, Node] = {}
    for name in sorted(names):
        head = looked.heads.get(name)
        others, is_damaged = tuple(looked.other_names.get(name, ())), name in unreadable
        if head is None:
            nodes[name] = Node(name, JOB, is_known=is_damaged, is_damaged=is_damaged, other_names=others)
            continue
        is_deleted = name in looked.deleted
        nodes[name] = Node(
            name, JOB, head.run_number, head.published,
            is_deleted=is_deleted, is_damaged=is_damaged, other_names=others,
        )  # fmt: skip
    sources = sorted({read.source for read in reads if read.lag is None})
    return nodes | {source: Node(source, SOURCE) for source in sources}


def _closure(start: str, steps: Iterable[tuple[str, str]]) -> set[str]:
    """Return everything that can be reached from `start`, including itself."""
    following: dict[str, list[str]] = {}
    for here, there in steps:
        following.setdefault(here, []).append(there)
    reached, open_ = {start}, [start]
    while open_:
        for there in following.get(open_.pop(), ()):
            if there not in reached:
                reached.add(there)
                open_.append(there)
    return reached


def _quoted(text: str) -> str:
    return "".join(_QUOTED.get(letter, letter) for letter in text)

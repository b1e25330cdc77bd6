"""How an output was written (format, options, partitions, columns), and whether one frame can read several runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from airflow_bookmarks.core.rules.schema import compare
from airflow_bookmarks.core.text.stored_json import read_json
from airflow_bookmarks.sources.upstream.table_outputs import is_same_table, table_format

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from airflow_bookmarks.core.rules.schema import Fold
    from airflow_bookmarks.core.run import OutputEntry
    from airflow_bookmarks.sources.upstream.job import UpstreamJob
    from airflow_bookmarks.sources.upstream.written import WrittenRun

Alike = Literal["any", "layout", "columns"]


@dataclass(frozen=True, slots=True)
class GivenLayout:
    """What a script says by itself of how files were written: their format, whether their columns, and the options.

    `recorded` names in small letters the options that each run stores which has set them.
    """

    format: str | None
    has_schema: bool
    options: Mapping[str, str] = field(default_factory=dict)
    recorded: Collection[str] = ()

    def covers(self, layouts: Iterable[Mapping[str, Any]]) -> bool:
        """Whether a reader needs nothing that is stored, also of other runs that it reads: these stored the same.

        A script that gives no option may have left them out, whatever other runs have stored: a window joins runs that
        were read one by one, because they were written otherwise.
        """
        is_all = self.format is not None and self.has_schema and bool(self.options)
        return is_all and all(self._agrees(layout) for layout in layouts)

    def _agrees(self, layout: Mapping[str, Any]) -> bool:
        stored = layout["options"]
        given = {name.lower(): value for name, value in self.options.items()}
        # One that only a reader knows changes nothing; one that was left at Spark's default is another than is given.
        options = {name: value for name, value in given.items() if name in stored or name in self.recorded}
        return layout == {"format": self.format, "partitionBy": [], "options": options}


def layout_of(entry: OutputEntry) -> Mapping[str, Any]:
    """Return format, partition columns and options of an output as they are compared."""
    written = entry.metadata
    options = {key.lower(): value for key, value in written.options.items()}
    return {"format": written.format, "partitionBy": list(written.partition_by), "options": options}


@dataclass(frozen=True, slots=True)
class Likeness:
    """What the runs that one frame reads have in common, and what makes two spellings of a column's name one."""

    alike: Alike
    fold: Fold

    def break_in(self, job: UpstreamJob, written: Sequence[WrittenRun]) -> tuple[int, str] | None:
        """Return the first run that was written otherwise than those before it, and how; None where all are alike.

        A run without any file left can't be misread.
        """
        if self.alike == "any":
            return None
        last: WrittenRun | None = None
        for each in written:
            if not each.paths:
                continue
            change = None if last is None else self._change(job, last.entry, each.entry)
            if last is not None and change is not None:
                runs = f"run {each.number} of upstream {job.name!r} was written otherwise than run {last.number}"
                return each.number, f"{runs}: {change}"
            last = each
        return None

    def _change(self, job: UpstreamJob, one: OutputEntry, other: OutputEntry) -> str | None:
        """Say what keeps two outputs from being read as one, None where nothing does."""
        was, now = layout_of(one), layout_of(other)
        if table_format(one) and table_format(other) and not is_same_table(one, other):
            return f"to the table {one.target!r}, then to {other.target!r}"
        changed = [f"{name} {was[name]!r}, then {now[name]!r}" for name in was if was[name] != now[name]]
        if changed:
            return "; ".join(changed)
        if self.alike == "layout" or one.schema is None or other.schema is None or one.schema == other.schema:
            return None
        before, after = (job.store.blobs.get(schema) for schema in (one.schema, other.schema))
        if not before or not after:
            return None
        difference = compare(read_json(before, "schema"), read_json(after, "schema"), self.fold)
        return None if difference.is_compatible else difference.in_words()

"""Decide what becomes of a read whose columns differ from those of the run before."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import SchemaChangedError
from airflow_bookmarks.core.rules.schema import OnSchemaChange, SchemaDifference, compare, resolved, without
from airflow_bookmarks.core.text.escaping import escaped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

log = logging.getLogger(__name__)

_WHAT_NOW = {"accept": "going on with the new ones", "reset": "reading all from the beginning, with the new ones"}


@dataclass(frozen=True, slots=True)
class ColumnRule:
    """The differences that a read may have from the run before.

    Args:
        reader: the job and its context, for messages.
        on_change: what to do about columns that went or have another type.
        fold: what makes two spellings of a name one.
        own: partition columns whose type the user's schema gives: it is theirs.
        may_go: columns that a run has only where it needs them: that for records that can't be parsed.
    """

    reader: str
    on_change: OnSchemaChange
    fold: Callable[[str], str]
    own: Sequence[str] = ()
    may_go: Sequence[str] = ()

    def judge(self, before: str | None, now: str) -> SchemaDifference:
        """Compare the current schema (JSON) with the one before it, which is None for a first read.

        Raises:
            SchemaChangedError: columns went or have another type, and `on_change` is "fail".
        """
        if before is None:
            return SchemaDifference()
        after = without(json.loads(now), self.own, self.fold)
        before = json.dumps(resolved(json.loads(before), json.loads(now), self.fold))
        names = {self.fold(each["name"]) for each in json.loads(now)["fields"]}
        gone = [name for name in self.may_go if self.fold(name) not in names]
        then = without(json.loads(before), [*self.own, *gone], self.fold)
        change = compare(then, after, self.fold)
        if change.is_compatible:
            if change:
                log.info("bookmark, %s: the columns have changed: %s", self.reader, escaped(change.in_words()))
            return change
        if self.on_change == "fail":
            raise SchemaChangedError(
                f"{self.reader}: columns are not those of the run before: {change.in_words()}. Nothing was committed. "
                "Mend the input or the schema and run it again; or decide by read(ctx, on_schema_change=...): 'accept' "
                "goes on with the new columns, 'reset' reads all from the beginning with them."
            )
        said = escaped(change.in_words())
        log.warning("bookmark, %s: the columns have changed: %s; %s", self.reader, said, _WHAT_NOW[self.on_change])
        return change

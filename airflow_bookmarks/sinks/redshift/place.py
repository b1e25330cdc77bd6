"""Where an output of Redshift is staged and what it goes to, in the texts that state keeps.

    target     <address>#<table>                                       conn:dw#public.orders
    place      <redshift_tmp_dir>/<namespace>/<job>/<number>.<fence>/<output>
    manifest   <place>/manifest                                        the files beside it, in <place>/rows
    root       <address>#<schema>#<redshift_tmp_dir>/<namespace>/<job> conn:dw#public#s3a://tmp/prod/orders.load

An address holds no `#`, and that of a schema is written %23. Neither a folder nor the ARN of a role is a secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from airflow_bookmarks.core.database.copy.columns import CopyColumn
from airflow_bookmarks.core.database.copy.load import DEFAULT_ROLE, CopyLoad, options_of, role_of
from airflow_bookmarks.core.database.copy.token import CopyToken
from airflow_bookmarks.core.database.script import NO_SCRIPT, PublishScript
from airflow_bookmarks.core.database.sink_table import SinkTable
from airflow_bookmarks.core.database.stage_name import StageName
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.metadata.known import value_of
from airflow_bookmarks.core.rules.territory import OutputBounds, Territory, staged_key
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.databases.address import DatabaseAddress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.sinks.sink import StoredOutput

_NAMES, _TYPES, _ROLE, _OPTIONS = "copy_names", "copy_types", "copy_role", "copy_options"
_BEFORE, _AFTER = "run_before", "run_after"
_ROOT_ITEM = "HEAD, staging"


def rows_folder(place: str) -> str:
    """Return the folder of the files of an output."""
    return f"{place}/rows"


def manifest_path(place: str) -> str:
    """Return where the manifest of an output lies."""
    return f"{place}/manifest"


def name_of(place: str) -> StageName | None:
    """Return job, run and output of a place that `RedshiftSink.stage` has made; None if it is none.

    Example:
        >>> name_of("s3a://tmp/prod/orders.load/12.15/dim").key
        RunKey(number=12, fence=15)
    """
    parts = place.rsplit("/", 4)
    key = staged_key(parts[-2]) if len(parts) == 5 else None
    return None if key is None else StageName.of(Territory(parts[1], parts[2]), RunKey(*key), parts[4])


@dataclass(frozen=True, slots=True)
class CopyTarget:
    """The table that an output goes to, and how its rows are loaded. `table` has a schema."""

    address: DatabaseAddress
    table: SinkTable
    columns: tuple[CopyColumn, ...]
    role: str = DEFAULT_ROLE
    options: str = ""
    script: PublishScript = NO_SCRIPT

    def __str__(self) -> str:
        return f"{self.address}#{self.table}"

    @property
    def schema(self) -> str:
        """The schema of the table, in which the table of fences lies as well.

        Raises:
            OptionError: it has none.
        """
        if self.table.schema is None:
            raise OptionError(f"the table {self.table} is named without a schema. Nothing was changed.")
        return self.table.schema

    def stats(self) -> Mapping[str, Any]:
        """Return what is stored with the output, which `StagedCopy.of` reads."""
        stats: dict[str, Any] = {
            "format": "redshift",
            "mode": "append",
            _NAMES: [each.name for each in self.columns],
            _TYPES: [each.kind for each in self.columns],
            _ROLE: self.role,
        }
        stats |= {_OPTIONS: self.options} if self.options else {}
        if self.script:
            stats |= {_BEFORE: list(self.script.before), _AFTER: list(self.script.after)}
        return stats

    def load(self, place: str, rows: int) -> CopyLoad:
        """Return what a publish of so many rows runs; without rows there is no manifest."""
        manifest = manifest_path(place) if rows else None
        return CopyLoad(self.table, self.columns, manifest, self.role, self.options, self.script)


@dataclass(frozen=True, slots=True)
class StagedCopy:
    """An output of a run as its publish finds it in state, shown to be the job's own; `name` tells job, run, output."""

    target: CopyTarget
    place: str
    name: StageName
    rows: int

    @classmethod
    def of(cls, output: StoredOutput) -> StagedCopy:
        """Return what is stored of an output.

        Raises:
            OutOfBoundsError: state names another folder, or no table. StateCorruptError: what is stored with it is none
                of this kind.
        """
        entry, run = output.entry, output.run
        OutputBounds.of(output.territory, run, output.name).check_place()
        named = name_of(entry.place)
        if named is None or named != StageName.of(output.territory, named.key, output.name):
            raise output.territory.refuse(_item(output), entry.place, "it is no staging folder of this output")
        try:
            target = _target_of(output)
        except OptionError as error:
            raise output.territory.refuse(_item(output), entry.target, f"it can't be loaded: {error}") from error
        return cls(target, entry.place, named, int(value_of(entry.stats, "rows") or 0))

    @property
    def token(self) -> CopyToken:
        """Its row in the table of fences."""
        return CopyToken(self.target.schema, self.name)

    @property
    def load(self) -> CopyLoad:
        """What its publish runs."""
        return self.target.load(self.place, self.rows)


def _item(output: StoredOutput) -> str:
    return f"RUN {output.run.key}, output {output.name!r}"


def _target_of(output: StoredOutput) -> CopyTarget:
    entry = output.entry
    address, _, table = entry.target.partition("#")
    names, types = value_of(entry.stats, _NAMES, ()), value_of(entry.stats, _TYPES, ())
    if not names or len(names) != len(types):
        raise OptionError("its columns are not stored")
    parsed = SinkTable.parse(table)
    if parsed.schema is None:
        raise OptionError("it is named without a schema")
    return CopyTarget(
        DatabaseAddress.parse(address),
        parsed,
        tuple(CopyColumn.of(name, kind) for name, kind in zip(names, types, strict=True)),
        role_of(value_of(entry.stats, _ROLE, DEFAULT_ROLE)),
        options_of(value_of(entry.stats, _OPTIONS, "")),
        PublishScript(tuple(value_of(entry.stats, _BEFORE, ())), tuple(value_of(entry.stats, _AFTER, ()))),
    )


@dataclass(frozen=True, slots=True)
class CopyRoot:
    """Where all runs of a job stage what they load into one schema: the root that the head lists.

    `folder` is that of the job: `<redshift_tmp_dir>/<namespace>/<job>`.
    """

    address: DatabaseAddress
    schema: str
    folder: str

    @classmethod
    def of_root(cls, territory: Territory, root: str) -> CopyRoot:
        """Return what a root of the job names.

        Raises:
            OutOfBoundsError: it is none of this job.
        """
        address, _, rest = root.partition("#")
        schema, _, folder = rest.partition("#")
        why = "what this job loads into Redshift is listed as <address>#<schema>#<folder>/<namespace>/<job>"
        territory.check_staging_root(_ROOT_ITEM, folder)
        try:
            parsed = cls(DatabaseAddress.parse(address), unquote(schema), folder)
        except OptionError as error:
            raise territory.refuse(_ROOT_ITEM, root, why) from error
        if not schema or str(parsed) != root:
            raise territory.refuse(_ROOT_ITEM, root, why)
        return parsed

    def __str__(self) -> str:
        return f"{self.address}#{quote(self.schema, safe='')}#{self.folder}"

"""Flat tables of nested records: one of the records, and one of each array in them, joined by ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.option import Option
from airflow_bookmarks.glue.dynamic.choice import column_of, marked
from airflow_bookmarks.glue.dynamic.types import (
    ArrayType,
    ChoiceType,
    Field,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
)
from airflow_bookmarks.glue.transforms.relational.numbering import PART, PLACE, with_ids, with_places
from airflow_bookmarks.glue.transforms.relational.storable import storable
from airflow_bookmarks.glue.transforms.typed_column import TypedColumn, check_columns, columns_in, flattened, only

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

    from airflow_bookmarks.glue.dynamic.base import FrameBase
    from airflow_bookmarks.glue.names import KeptValue
    from airflow_bookmarks.glue.run import GlueRun

_CALL = "relationalize"
_STATE = f"glue.{_CALL}."
_ID, _INDEX, _ELEMENT = "__id", "__index", "__element"
_ARRAYS = (ArrayType, MapType)

Part = tuple[str, TypedColumn]  # a column of a table: its name, and what it holds


def tables_of(frame: FrameBase, root: str, ctx: str, staging_path: str | None = None) -> dict[str, DataFrame]:
    """Return the tables of a frame by name, that of the records first.

    The table `root` has a column for each field that is no struct, named by its path: `a.b`. In place of an array it
    has an id, a long, null where the array is empty or missing. The elements are rows of the table `root_a.b`: `id`,
    `index` from 0, and `a.b.val`, or `a.b.val.c` for each field of a struct. Arrays in elements go the same way, into
    `root_a.b.val.c`; a map is an array of structs of `key` and `value`. Where a field is an array in some records and
    another type in others, the id is a column of its own, `a.b_array`.

    The rows are written once into a folder of the run, so ids are the same in each action. They go on from the last
    committed run of the same `ctx`; without one, and with the option disable, they begin at 1.

    Args:
        frame: the frame.
        root: the name of the table of the records.
        ctx: the transformation context, under which the last ids are kept.
        staging_path: the folder that the script offers for the rows, see `GlueRun.staging_path`.

    Raises:
        OptionError: the name is empty; or Spark runs on other machines, and there is no folder.
        FieldPathError: two fields become one column.
    """
    if not root:
        raise OptionError("relationalize: the name of the root table is empty. Nothing was read or changed.")
    rows = frame.typed()
    found = [(field, part) for field, value in columns_in(rows.schema) for part in _parts(field, value)]
    check_columns([(field, name) for field, (name, _) in found], frame.spark, _CALL)
    parts = [part for _, part in found]
    if not any(isinstance(value.type, _ARRAYS) for _, value in parts):
        return {root: rows.select([marked(value.column, name, value.type) for name, value in parts])}
    kept = _kept_ids(frame.run, ctx)
    before: dict[str, int] = {} if kept is None else kept.get({})
    last = dict(before)
    tables = dict(_fixed(rows, parts, frame.run.staging_path(f"relationalize-{root}", staging_path)).tables(root, last))
    given = {name: number for name, number in last.items() if number}
    if kept is not None and given != before:  # a value that is set anew would make an empty run one with news
        kept.set(given)
    return tables


def _kept_ids(run: GlueRun, ctx: str) -> KeptValue | None:
    """Return the last id of each array, by its path, as runs of this context have left it."""
    return run.state(f"{_STATE}{ctx}") if ctx and run.option is not Option.DISABLE else None


def _fixed(rows: DataFrame, parts: Sequence[Part], path: str) -> _Rows:
    """Write rows once, and return them as they were written: ids follow from their places, which must stay."""
    names = [f"__{number}" for number in range(len(parts))]
    stored = [storable(value).alias(name) for name, (_, value) in zip(names, parts, strict=True)]
    placed = with_places(rows.select(stored))
    placed.write.mode("overwrite").parquet(path)
    back = rows.sparkSession.read.schema(placed.schema).parquet(path)
    read = [(path, TypedColumn(column_of(name), value.type)) for name, (path, value) in zip(names, parts, strict=True)]
    return _Rows(back, read, [PLACE])


def _parts(name: str, value: TypedColumn) -> list[Part]:
    """Return the columns of a table that hold a value: arrays are apart from what else a value may be."""
    return [part for each in flattened(name, value) for part in _apart(*each)]


def _apart(name: str, value: TypedColumn) -> list[Part]:
    if not isinstance(value.type, ChoiceType):
        return [(name, value)]
    arrays = [each for each in value.type.choices if isinstance(each, _ARRAYS)]
    others = [each for each in value.type.choices if not isinstance(each, _ARRAYS)]
    if not arrays:
        return [(name, value)]
    named = [(f"{name}_{each.typeName()}" if others or len(arrays) > 1 else name, each) for each in arrays]
    found = [(new, TypedColumn(value.column[each.typeName()], each)) for new, each in named]
    return [(name, only(value, others)), *found] if others else found


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a table while its arrays are in it.

    Args:
        frame: the rows, with `PART`.
        parts: the columns that they hold.
        order: columns that order the rows of a `PART`, without ties.
        keys: columns that come first in the table.
    """

    frame: DataFrame
    parts: Sequence[Part]
    order: Sequence[str]
    keys: Sequence[Part] = ()

    def tables(self, root: str, last: dict[str, int], path: str = "") -> Iterator[tuple[str, DataFrame]]:
        """Return this table and those of its arrays, by name; `last` becomes the last id of each array."""
        columns = [(f"__part_{number}", *part) for number, part in enumerate(self.parts)]
        arrays = {alias: name for alias, name, value in columns if isinstance(value.type, _ARRAYS)}
        held = self.frame.select(
            PART, *self.order, *[_as_array(value).column.alias(alias) for alias, _, value in columns]
        )
        ids: dict[str, str] = {}
        if arrays:
            numbered = with_ids(held, list(arrays), self.order, {a: last.get(name, 0) for a, name in arrays.items()})
            held, ids = numbered.rows, dict(numbered.ids)
            last.update({name: numbered.last[alias] for alias, name in arrays.items()})
        shown = [
            (
                name,
                TypedColumn(column_of(ids[alias]), LongType())
                if alias in ids
                else TypedColumn(column_of(alias), value.type),
            )
            for alias, name, value in columns
        ]
        table = held.select([marked(value.column, name, value.type) for name, value in (*self.keys, *shown)])
        yield f"{root}_{path}" if path else root, table
        for alias, name, value in columns:
            if alias in ids:
                yield from _elements(held, alias, ids[alias], name, value).tables(root, last, name)


def _elements(held: DataFrame, array: str, ids: str, name: str, value: TypedColumn) -> _Rows:
    """Return the elements of an array column as rows."""
    exploded = held.where(column_of(ids).isNotNull()).select(
        PART, column_of(ids).alias(_ID), F.posexplode(column_of(array)).alias(_INDEX, _ELEMENT)
    )
    kind = _as_array(value).type
    element = TypedColumn(column_of(_ELEMENT), kind.elementType if isinstance(kind, ArrayType) else kind)
    keys = [("id", TypedColumn(column_of(_ID), LongType())), ("index", TypedColumn(column_of(_INDEX), IntegerType()))]
    parts = _parts(f"{name}.val", element)
    check_columns([(name, column) for column, _ in parts], held.sparkSession, _CALL)
    return _Rows(exploded, parts, [_ID, _INDEX], keys)


def _as_array(value: TypedColumn) -> TypedColumn:
    """Return a map as the array of its entries, and all else as it is."""
    if not isinstance(value.type, MapType):
        return value
    entry = StructType([Field("key", StringType()), Field("value", value.type.valueType)])
    return TypedColumn(F.map_entries(value.column), ArrayType(entry))

"""The columns that a record is taken apart into, once the types of its values are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from airflow_bookmarks.glue.dynamic.choice import choices_in, spark_type
from airflow_bookmarks.glue.dynamic.types import ArrayType, ChoiceType, DataType, NullType, StructType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import Column

    from airflow_bookmarks.glue.dynamic.choice import Steps

    Chosen = Callable[[Column, ChoiceType, Steps], Column]


def taken(value: Column, wanted: DataType, chosen: Chosen, here: Steps = ()) -> Column:
    """Return a value that was read without the choices in it, with its choices.

    Args:
        value: the value; null where there is none.
        wanted: its type.
        chosen: makes a choice of what was read at a place.
        here: the place of the value.
    """
    if isinstance(wanted, NullType):
        return F.lit(None)
    if not choices_in(wanted) and not _has_null(wanted):
        return value
    if isinstance(wanted, StructType):
        parts = [(f, taken(value.getField(f.name), f.dataType, chosen, (*here, f.name))) for f in wanted]
        return F.when(value.isNotNull(), F.struct(*[part.alias(f.name) for f, part in parts]))
    if isinstance(wanted, ArrayType):
        element = wanted.elementType
        return F.transform(value, lambda each: taken(each, element, chosen, (*here, None)))
    if not isinstance(wanted, ChoiceType):
        raise TypeError(f"no JSON is read as {wanted}")
    return chosen(value, wanted, here)


def chosen_variant(variant: Column, choice: ChoiceType, here: Steps) -> Column:
    """Return a variant as a choice; null if it is null, or absent."""
    name = F.schema_of_variant(variant)
    # By cases, since in a lambda Spark evaluates each mention of the name.
    first, *others = [(_IS[part.typeName()](name), _as(variant, part, choice, here)) for part in choice.choices]
    chosen = F.when(*first)
    for case in others:
        chosen = chosen.when(*case)
    return chosen


def _as(variant: Column, wanted: DataType, choice: ChoiceType, here: Steps) -> Column:
    """Return a choice that holds a variant as one of its types."""
    value = taken(got(variant, (), ddl(wanted)), wanted, chosen_variant, here)
    parts = [value if part is wanted else F.lit(None).cast(spark_type(part)) for part in choice.choices]
    return F.struct(*[each.alias(part.typeName()) for each, part in zip(parts, choice.choices, strict=True)])


# Whether a value whose schema has a name is one of a type of a choice. No choice has whole numbers of two types.
_IS: Mapping[str, Callable[[Column], Column]] = {
    "int": lambda name: name == "BIGINT",
    "long": lambda name: name == "BIGINT",
    "decimal": lambda name: (name == "BIGINT") | name.startswith("DECIMAL"),
    "double": lambda name: (name == "DOUBLE") | name.startswith("DECIMAL"),
    "string": lambda name: name == "STRING",
    "boolean": lambda name: name == "BOOLEAN",
    "struct": lambda name: name.startswith("OBJECT"),
    "array": lambda name: name.startswith("ARRAY"),
}


def free_name(name: str, *others: Iterable[str]) -> str:
    """Return a name for a column that no field and no other column has: of two with one name Spark may take either."""
    known = {each.lower() for names in others for each in names}
    while name in known:
        name += "_"
    return name


def is_beyond_four_bytes(whole: Column) -> Column:
    """Whether a whole number is too large, or too small, for an `int`."""
    return ~whole.between(-(2**31), 2**31 - 1)


def _has_null(wanted: DataType) -> bool:
    if isinstance(wanted, StructType):
        return any(_has_null(part.dataType) for part in wanted)
    return isinstance(wanted, NullType) or (isinstance(wanted, ArrayType) and _has_null(wanted.elementType))


def ddl(wanted: DataType) -> str:
    """Return what Spark takes a value from a variant as, in its SQL: what it has no type for stays a variant."""
    if isinstance(wanted, ChoiceType | NullType):
        return "variant"
    if isinstance(wanted, StructType):
        parts = [f"`{part.name.replace('`', '``')}`: {ddl(part.dataType)}" for part in wanted]
        return f"struct<{', '.join(parts)}>"
    if isinstance(wanted, ArrayType):
        return f"array<{ddl(wanted.elementType)}>"
    return spark_type(wanted).simpleString()


def got(root: Column, place: Sequence[str | None], target: str) -> Column:
    """Return what a variant holds below names, as a type of Spark's SQL; null if it is absent or doesn't fit."""
    path = "$"
    for number, name in enumerate(place):
        if name is None:
            raise TypeError(f"no value is at {place}: it leads into an array")
        if '"' in name and "'" in name:  # no path can name it
            entries = F.try_variant_get(root, path, "map<string, variant>")
            return got(entries[F.lit(name)], place[number + 1 :], target)
        quote = "'" if '"' in name else '"'
        path += f"[{quote}{name}{quote}]"
    return root if path == "$" and target == "variant" else F.try_variant_get(root, path, target)

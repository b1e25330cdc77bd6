"""The types of dynamic frames, under the names of `awsglue.gluetypes`, and what Spark calls them.

A choice is a value that is of one of several types. Spark has none: see `choice`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql import types as spark_types

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class DataType:
    """A type of values.

    Args:
        properties: what else is known of it; kept, and not looked at.
    """

    _NAME: ClassVar[str] = ""

    def __init__(self, properties: Mapping[str, Any] | None = None) -> None:
        self.properties = dict(properties or {})

    @classmethod
    def typeName(cls) -> str:
        """Return the name of the type, as schemas show it: "int", "string", "struct"."""
        return cls._NAME or cls.__name__.removesuffix("Type").lower()

    def jsonValue(self) -> dict[str, Any]:
        """Return the type as JSON shows it: `{"dataType": name, "properties": properties}`."""
        return {"dataType": self.typeName(), "properties": self.properties}

    @classmethod
    def fromJsonValue(cls, json_value: Mapping[str, Any]) -> DataType:
        """Return the type that `jsonValue` has shown.

        Raises:
            ValueError: it names no type.
        """
        return _from_json(json_value)

    def _lines(self) -> list[str]:
        """Return what `printSchema` shows below the line of this type."""
        return []

    def _parts(self) -> tuple[object, ...]:
        return ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, DataType) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((type(self), self._parts()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._parts()))})"

    def __str__(self) -> str:
        return self.typeName()


class AtomicType(DataType):
    """A type whose values have no parts."""


class BinaryType(AtomicType):
    """Bytes."""


class BooleanType(AtomicType):
    """True and false."""


class ByteType(AtomicType):
    """Integers of one byte."""


class DateType(AtomicType):
    """Days."""


class DoubleType(AtomicType):
    """Floating-point numbers of eight bytes."""


class FloatType(AtomicType):
    """Floating-point numbers of four bytes."""


class IntegerType(AtomicType):
    """Integers of four bytes."""

    _NAME = "int"


class LongType(AtomicType):
    """Integers of eight bytes."""


class NullType(AtomicType):
    """No value but null was seen."""


class ShortType(AtomicType):
    """Integers of two bytes."""


class StringType(AtomicType):
    """Text."""


class TimestampType(AtomicType):
    """Instants."""


class TimestampNTZType(AtomicType):
    """Dates and times without a zone."""

    _NAME = "timestamp_ntz"


class UnknownType(AtomicType):
    """Values of a type that has no name here."""


class DecimalType(AtomicType):
    """Decimal numbers.

    Args:
        precision: digits in all; default 10.
        scale: digits after the point; default 2.
    """

    def __init__(self, precision: int = 10, scale: int = 2, properties: Mapping[str, Any] | None = None) -> None:
        super().__init__(properties)
        self.precision, self.scale = precision, scale

    def jsonValue(self) -> dict[str, Any]:
        """Return the type as JSON shows it, with its precision and scale."""
        return {**super().jsonValue(), "precision": self.precision, "scale": self.scale}

    def _parts(self) -> tuple[object, ...]:
        return (self.precision, self.scale)

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


class EnumType(AtomicType):
    """One of the listed texts."""

    def __init__(self, options: Iterable[str] = (), properties: Mapping[str, Any] | None = None) -> None:
        super().__init__(properties)
        self.options = list(options)

    def jsonValue(self) -> dict[str, Any]:
        """Return the type as JSON shows it, with its texts."""
        return {**super().jsonValue(), "options": self.options}

    def _parts(self) -> tuple[object, ...]:
        return tuple(self.options)


class ArrayType(DataType):
    """Lists of values of one type."""

    def __init__(self, elementType: DataType | None = None, properties: Mapping[str, Any] | None = None) -> None:
        super().__init__(properties)
        self.elementType = UnknownType() if elementType is None else elementType  # an empty struct is falsy

    def jsonValue(self) -> dict[str, Any]:
        """Return the type as JSON shows it, with that of its elements."""
        return {**super().jsonValue(), "elementType": self.elementType.jsonValue()}

    def _lines(self) -> list[str]:
        return _shown("element: ", self.elementType)

    def _parts(self) -> tuple[object, ...]:
        return (self.elementType,)


class MapType(DataType):
    """Values of one type by text."""

    def __init__(self, valueType: DataType | None = None, properties: Mapping[str, Any] | None = None) -> None:
        super().__init__(properties)
        self.valueType = UnknownType() if valueType is None else valueType
        self.keyType = StringType()

    def jsonValue(self) -> dict[str, Any]:
        """Return the type as JSON shows it, with that of its values."""
        return {**super().jsonValue(), "valueType": self.valueType.jsonValue()}

    def _lines(self) -> list[str]:
        return [*_shown("keyType: ", self.keyType), *_shown("valueType: ", self.valueType)]

    def _parts(self) -> tuple[object, ...]:
        return (self.valueType,)


class ChoiceType(DataType):
    """Values of which each is of one of several types.

    Args:
        choices: the types, at most one of each name.
    """

    def __init__(self, choices: Iterable[DataType] = (), properties: Mapping[str, Any] | None = None) -> None:
        super().__init__(properties)
        self.choices: list[DataType] = []
        self.merge(choices)

    def add(self, new_choice: DataType) -> None:
        """Add a type.

        Raises:
            ValueError: there is one of that name.
        """
        if any(choice.typeName() == new_choice.typeName() for choice in self.choices):
            raise ValueError(f"the choice has a type {new_choice.typeName()!r} already. Nothing was changed.")
        self.choices.append(new_choice)

    def merge(self, new_choices: DataType | Iterable[DataType]) -> None:
        """Add those of the types, or of the types of another choice, whose names are not there yet."""
        if isinstance(new_choices, ChoiceType):
            new_choices = new_choices.choices
        for choice in [new_choices] if isinstance(new_choices, DataType) else new_choices:
            if choice.typeName() not in [known.typeName() for known in self.choices]:
                self.add(choice)

    def jsonValue(self) -> dict[str, Any]:
        """Return the type as JSON shows it, with its types."""
        return {**super().jsonValue(), "choices": [choice.jsonValue() for choice in self.choices]}

    def _lines(self) -> list[str]:
        return [line for choice in self.choices for line in _shown("", choice)]

    def _parts(self) -> tuple[object, ...]:
        return tuple(self.choices)


class Field:
    """A named part of a struct."""

    def __init__(self, name: str, dataType: DataType, properties: Mapping[str, Any] | None = None) -> None:
        self.name, self.dataType, self.properties = name, dataType, dict(properties or {})

    def jsonValue(self) -> dict[str, Any]:
        """Return the field as JSON shows it."""
        return {"name": self.name, "container": self.dataType.jsonValue(), "properties": self.properties}

    @classmethod
    def fromJsonValue(cls, json_value: Mapping[str, Any]) -> Field:
        """Return the field that `jsonValue` has shown."""
        return cls(json_value["name"], _from_json(json_value["container"]), json_value.get("properties"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Field) and (self.name, self.dataType) == (other.name, other.dataType)

    def __hash__(self) -> int:
        return hash((self.name, self.dataType))

    def __repr__(self) -> str:
        return f"Field({self.name!r}, {self.dataType!r})"


class StructType(DataType):
    """Named parts in an order. Also the schema of a frame.

    Example:
        >>> schema = StructType([Field("id", LongType()), Field("code", ChoiceType([IntegerType(), StringType()]))])
        >>> print(schema.treeString())
        root
        |-- id: long
        |-- code: choice
        |    |-- int
        |    |-- string
    """

    def __init__(self, fields: Iterable[Field] = (), properties: Mapping[str, Any] | None = None) -> None:
        super().__init__(properties)
        self.fields = list(fields)

    def add(self, field: Field) -> None:
        """Add a field at the end."""
        self.fields.append(field)

    def hasField(self, field: str | Field) -> bool:
        """Whether there is a field of this name."""
        name = field.name if isinstance(field, Field) else field
        return any(known.name == name for known in self.fields)

    def getField(self, field: str | Field) -> Field:
        """Return the field of this name.

        Raises:
            KeyError: there is none.
        """
        name = field.name if isinstance(field, Field) else field
        for known in self.fields:
            if known.name == name:
                return known
        raise KeyError(f"no field {name!r} among {[known.name for known in self.fields]}")

    @property
    def field_map(self) -> dict[str, Field]:
        """The fields by name."""
        return {field.name: field for field in self.fields}

    def jsonValue(self) -> dict[str, Any]:
        """Return the type as JSON shows it, with its fields."""
        return {**super().jsonValue(), "fields": [field.jsonValue() for field in self.fields]}

    def treeString(self) -> str:
        """Return what `printSchema` prints."""
        return "\n".join(["root", *self._lines()])

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def _lines(self) -> list[str]:
        return [line for field in self.fields for line in _shown(f"{field.name}: ", field.dataType)]

    def _parts(self) -> tuple[object, ...]:
        return tuple(self.fields)


class EntityType(DataType):
    """A type that stands for a thing. Glue has no use for it yet, and neither has this layer."""

    def __init__(self, entity: str, base_type: DataType, properties: Mapping[str, Any] | None = None) -> None:
        super().__init__(properties)
        raise NotImplementedError("EntityType: Glue has the name and no such type. Nothing was read or changed.")


def _shown(title: str, shown: DataType) -> list[str]:
    """Return the lines of one type: its own, and those below."""
    return [f"|-- {title}{shown}", *(f"|    {line}" for line in shown._lines())]


# ---- atomic types and those of Spark

_ATOMS: dict[type[DataType], type[spark_types.DataType]] = {
    BinaryType: spark_types.BinaryType,
    BooleanType: spark_types.BooleanType,
    ByteType: spark_types.ByteType,
    DateType: spark_types.DateType,
    DoubleType: spark_types.DoubleType,
    FloatType: spark_types.FloatType,
    IntegerType: spark_types.IntegerType,
    LongType: spark_types.LongType,
    NullType: spark_types.NullType,
    ShortType: spark_types.ShortType,
    StringType: spark_types.StringType,
    TimestampType: spark_types.TimestampType,
    TimestampNTZType: spark_types.TimestampNTZType,
    UnknownType: spark_types.NullType,
    EnumType: spark_types.StringType,
}
_OF_SPARK = {of_spark: atom for atom, of_spark in reversed(_ATOMS.items())}


def atom_of(of_spark: spark_types.DataType) -> DataType:
    """Return what a type of Spark that has no parts is called here: `UnknownType` where it has no name."""
    if isinstance(of_spark, spark_types.DecimalType):
        return DecimalType(of_spark.precision, of_spark.scale)
    for kind, atom in _OF_SPARK.items():
        if isinstance(of_spark, kind):
            return atom()
    return StringType() if isinstance(of_spark, _TEXTS) else UnknownType({"spark": of_spark.simpleString()})


_TEXTS = (spark_types.CharType, spark_types.VarcharType)


def spark_atom(atom: DataType) -> spark_types.DataType:
    """Return the type of Spark of one that has no parts."""
    return (
        spark_types.DecimalType(atom.precision, atom.scale) if isinstance(atom, DecimalType) else _ATOMS[type(atom)]()
    )


# ---- from JSON

_WITH_PARTS: tuple[type[DataType], ...] = (DecimalType, ArrayType, MapType, ChoiceType, StructType)
_BY_NAME: dict[str, type[DataType]] = {kind.typeName(): kind for kind in (*_ATOMS, *_WITH_PARTS)}


def _from_json(value: Mapping[str, Any]) -> DataType:
    kind, properties = _BY_NAME.get(value["dataType"]), value.get("properties")
    if kind is None:
        raise ValueError(f"no type is called {value['dataType']!r}; expected one of {sorted(_BY_NAME)}")
    if kind is DecimalType:
        return DecimalType(value["precision"], value["scale"], properties)
    if kind is EnumType:
        return EnumType(value["options"], properties)
    if kind is ArrayType:
        return ArrayType(_from_json(value["elementType"]), properties)
    if kind is MapType:
        return MapType(_from_json(value["valueType"]), properties)
    if kind is ChoiceType:
        return ChoiceType(map(_from_json, value["choices"]), properties)
    if kind is StructType:
        return StructType(map(Field.fromJsonValue, value["fields"]), properties)
    return kind(properties)

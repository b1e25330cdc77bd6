"""The partitions of a table as a catalog lists them: where each lies, and the values of its columns.

A folder need not say the values in its name, and need not lie below the folder of the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.files.columns import texts
from airflow_bookmarks.core.selection.partition import placed, roots_above

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Values = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class ListedPartitions:
    """Partitions that are read: no other folder is.

    Args:
        types: by partition column, in their order, its Spark type in DDL.
        folders: by location the values of these columns, as text; None for NULL.

    Raises:
        OptionError: a location has another number of values than there are columns.

    Example:
        >>> listed = ListedPartitions({"day": "date"}, {"/lake/a/1": ("2024-01-01",)})
        >>> listed.folder_of("/lake/a/1/x/part-0.csv"), listed.values_of("/lake/a/1/part-0.csv")
        ('/lake/a/1', ('2024-01-01',))
    """

    types: Mapping[str, str]
    folders: Mapping[str, Values]
    _place_of: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for folder, values in self.folders.items():
            if len(values) != len(self.types):
                raise OptionError(
                    f"the partition at {folder!r} has {len(values)} values, and the table has the partition columns "
                    f"{list(self.types)}. Nothing was read or changed. Correct the partition in its catalog."
                )
        object.__setattr__(self, "_place_of", placed(list(self.folders)))

    def folder_of(self, path: str) -> str | None:
        """Return the innermost location that holds a file; None where it lies in none."""
        return max(roots_above(path, self._place_of), key=len, default=None)

    def values_of(self, path: str) -> Values | None:
        """Return the values of the partition that holds a file; None where it lies in none."""
        folder = self.folder_of(path)
        return None if folder is None else self.folders[folder]

    def spelled(self, canonical: Callable[[str], str]) -> ListedPartitions:
        """Return the same partitions with another spelling of their locations.

        Raises:
            OptionError: two partitions with different values lie in one folder.
        """
        folders: dict[str, Values] = {}
        for folder, values in self.folders.items():
            path = canonical(folder)
            if folders.setdefault(path, values) != values:
                raise OptionError(
                    f"two partitions have the location {path!r}, with the values {folders[path]} and {values}: its "
                    "files would belong to both. Nothing was read or changed. Correct one of them in its catalog."
                )
        return replace(self, folders=folders)

    def document(self) -> dict[str, Any]:
        """Return them as a stored plan holds them: names and types, locations, and a column of values for each."""
        values = list(self.folders.values())
        return {
            "types": dict(self.types),
            "folders": list(self.folders),
            "values": [[each[at] for each in values] for at in range(len(self.types))],
        }

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> ListedPartitions:
        """Return what `document` wrote.

        Raises:
            LookupError, TypeError, ValueError: it is no such document.
        """
        folders, columns = texts(document["folders"]), document["values"]
        for column in columns:
            if len(texts(column, or_none=True)) != len(folders):
                raise ValueError("its columns are not of one length")
        types = document["types"]
        texts([*types, *types.values()])
        if len(columns) != len(types):
            raise ValueError("it has not one column of values for each type")
        return cls(types, {folder: tuple(column[row] for column in columns) for row, folder in enumerate(folders)})


def union_of(listed: Iterable[ListedPartitions | None]) -> ListedPartitions | None:
    """Return the partitions of several plans; of one that several know, the last word. None where none has any."""
    known: Sequence[ListedPartitions] = [each for each in listed if each is not None]
    if not known:
        return None
    return ListedPartitions(known[-1].types, {folder: values for each in known for folder, values in _of(each, known)})


def _of(each: ListedPartitions, known: Sequence[ListedPartitions]) -> list[tuple[str, Values]]:
    """Return the partitions of one plan with values for the columns of the last."""
    names = list(each.types)
    return [
        (folder, tuple(values[names.index(name)] if name in names else None for name in known[-1].types))
        for folder, values in each.folders.items()
    ]

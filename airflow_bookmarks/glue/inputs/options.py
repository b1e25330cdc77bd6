"""Options of reads, as scripts and parameters of tables write them: each known one checked, the others told of.

Glue takes what it doesn't know without a word. Here a warning names it, and the run counts it ("ignored options").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.catalogs.formats import listed

if TYPE_CHECKING:
    from airflow_bookmarks.glue.run import GlueRun

IGNORED = "ignored options"
_MAX_BAND_MS = 900_000
_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no", "")

# Words of reads of files that never change which rows are read: how Glue lists, groups and compresses.
_WITHOUT_EFFECT = (
    "groupfiles", "groupsize", "uses3listimplementation", "minpartitions", "targetpartitions", "compressiontype",
    "mergeschema", "usesparkdatasource", "maxconcurrency", "partitionkeys", "enablesamplepath",
    "useconnectionproperties", "inputtype", "usegluejdbcconnection", "enablepartitionfiltering", "connectionname",
)  # fmt: skip
_GROUPS = ("inpartition", "acrosspartition", "none")


class Words:
    """Options by their names in any case, each taken once; what is left over is unknown.

    Args:
        call: the call of the script, for messages.
        given: the options; later ones win, and a contradiction between them is told where it matters.
    """

    def __init__(self, call: str, *given: Mapping[str, Any]) -> None:
        self.call = call
        self._left: dict[str, tuple[str, Any]] = {}
        for options in given:
            self._left.update({name.lower(): (name, value) for name, value in options.items()})

    def take(self, name: str) -> Any:
        """Return an option, which counts as known; None where it is not given."""
        return self._left.pop(name.lower(), (name, None))[1]

    def text(self, name: str) -> str | None:
        """Return an option that is text; an empty one counts as not given."""
        value = self.take(name)
        return None if value is None or value == "" else str(value)

    def number(self, name: str, *, least: int = 0) -> int | None:
        """Return an option that is a whole number, as a number or text.

        Raises:
            OptionError: it is none, or less than `least`.
        """
        value = self.take(name)
        if value is None or value == "":
            return None
        try:
            if isinstance(value, bool) or (isinstance(value, float) and value != int(value)):
                raise ValueError
            number = int(value)
        except (TypeError, ValueError):
            raise self.wrong(name, value, f"a whole number of {least} or more") from None
        if number < least:
            raise self.wrong(name, value, f"a whole number of {least} or more")
        return number

    def flag(self, name: str, default: bool = False) -> bool:
        """Return an option that is true or false, as a boolean or text.

        Raises:
            OptionError: it is neither.
        """
        value = self.take(name)
        text = str(value).lower()
        if value is None:
            return default
        if text in _TRUE or text in _FALSE:
            return text in _TRUE
        raise self.wrong(name, value, "true or false")

    def texts(self, name: str) -> list[str] | None:
        """Return an option that is a list of texts, as a list or as JSON in a text.

        Raises:
            OptionError: it is neither.
        """
        value = self.take(name)
        if value is None or value == "":
            return None
        if isinstance(value, str):
            return listed(value, f"{self.call}: {name}")
        if not isinstance(value, Sequence) or not all(isinstance(each, str) for each in value):
            raise self.wrong(name, value, "a list of texts")
        return list(value)

    def leave(self, *names: str) -> None:
        """Take options that have no effect."""
        for name in names:
            self._left.pop(name.lower(), None)

    def wrong(self, name: str, value: Any, expected: str) -> OptionError:
        """Return the error about a value."""
        return OptionError(f"{self.call}: {name}={value!r}: expected {expected}. Nothing was read or changed.")

    def left(self) -> Mapping[str, Any]:
        """Return what nobody has taken, by the names that the script has used."""
        return dict(self._left.values())

    def tell_left(self, run: GlueRun, ctx: str) -> None:
        """Warn of options that nobody has taken, and count them."""
        if self._left:
            run.count(IGNORED, len(self._left), ctx=ctx)
            run.warn_once(f"{self.call}: unknown options {', '.join(sorted(self.left()))} are ignored, as in Glue")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWords:
    """What a script says of which files are read, in the words of `BookmarkedReader.files`.

    `attach_filename` names a column with the path of each row's file.
    """

    exclusions: Sequence[str] = ()
    recursive: bool = False
    max_files: int | None = None
    max_bytes: int | None = None
    max_band: timedelta | None = None
    max_files_in_band: int | None = None
    exclude_storage_classes: Sequence[str] = ()
    attach_filename: str | None = None
    catalog_predicate: str | None = None
    is_fail_fast: bool = False
    keys: Sequence[str] = field(default=())

    @classmethod
    def of(cls, words: Words, parameters: Mapping[str, str]) -> FileWords:
        """Take the options of files; parameters of a table count where the script says nothing.

        Raises:
            OptionError: one has a value that is none of its own, or both bounds are given.
        """
        told = Words(f"{words.call}: parameters of the table", parameters)

        def either(take: str, name: str, **how: Any) -> Any:
            given, of_table = getattr(words, take)(name, **how), getattr(told, take)(name, **how)
            return of_table if given is None else given

        band, most = either("number", "maxBand"), either("number", "maxFilesInBand", least=1)
        group = either("text", "groupFiles")
        if group is not None and group.lower() not in _GROUPS:
            raise words.wrong("groupFiles", group, "'inPartition', 'acrossPartition' or 'none'")
        either("number", "groupSize")
        max_files, max_bytes = either("number", "boundedFiles", least=1), either("number", "boundedSize", least=1)
        if max_files is not None and max_bytes is not None:
            raise OptionError(
                f"{words.call}: boundedFiles={max_files} and boundedSize={max_bytes}: one run has one bound. Nothing "
                "was read or changed. Leave one of them out."
            )
        recurse = either("text", "recurse")
        keys = keys_of(words)
        found = cls(
            exclusions=either("texts", "exclusions") or (),
            recursive=Words(words.call, {"recurse": recurse or "false"}).flag("recurse"),
            max_files=max_files,
            max_bytes=max_bytes,
            max_band=None if most is None else timedelta(milliseconds=_MAX_BAND_MS if band is None else band),
            max_files_in_band=most,
            exclude_storage_classes=either("texts", "excludeStorageClasses") or (),
            attach_filename=either("text", "attachFilename"),
            catalog_predicate=words.text("catalogPartitionPredicate"),
            is_fail_fast=words.flag("isFailFast"),
            keys=keys.columns,
        )
        words.leave(*_WITHOUT_EFFECT)
        return found


def below(exclusions: Sequence[str], roots: Sequence[str]) -> list[str]:
    """Return patterns of exclusions, of which some name the folder that is loaded, as they are below that.

    Example:
        >>> below(["s3://lake/raw/tmp/**", "**.bak"], ["s3://lake/raw/"])
        ['tmp/**', '**.bak']
    """
    folders = [f"{root.rstrip('/')}/" for root in roots]
    return [next((each.removeprefix(f) for f in folders if each.startswith(f)), each) for each in exclusions]


@dataclass(frozen=True, slots=True)
class BookmarkKeys:
    """The columns by which a table is read, and their order."""

    columns: tuple[str, ...] = ()
    order: str = "asc"


def keys_of(words: Words) -> BookmarkKeys:
    """Take `jobBookmarkKeys`, or `bookmark_key_fields`, and `jobBookmarkKeysSortOrder`.

    Raises:
        OptionError: both lists are given and differ; one is empty or no list of texts; another order.
    """
    found: dict[str, tuple[str, ...]] = {}
    for name in ("jobBookmarkKeys", "bookmark_key_fields"):
        value = words.take(name)
        if value is None:
            continue
        if isinstance(value, str):
            value = listed(value, f"{words.call}: {name}") if value.lstrip().startswith("[") else [value]
        if not isinstance(value, Sequence) or not value or not all(isinstance(each, str) and each for each in value):
            raise words.wrong(name, value, "a list of columns that is not empty")
        found[name] = tuple(value)
    if len(set(found.values())) > 1:
        raise OptionError(
            f"{words.call}: jobBookmarkKeys={list(found['jobBookmarkKeys'])} and "
            f"bookmark_key_fields={list(found['bookmark_key_fields'])} name other columns, and are two words for the "
            "same. Nothing was read or changed. Leave one of them out."
        )
    order = words.take("jobBookmarkKeysSortOrder")
    if order is not None and (not isinstance(order, str) or order.lower() not in ("asc", "desc")):
        raise words.wrong("jobBookmarkKeysSortOrder", order, "'asc' or 'desc'")
    return BookmarkKeys(next(iter(found.values()), ()), "asc" if order is None else order.lower())

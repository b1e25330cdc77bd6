"""Parse one page of an S3 listing, reading only what a listing needs.

botocore builds a dictionary and a datetime for each key, which bounds a listing to some 20,000 keys a second. This
reads a page straight into columns; signing, retries and errors stay botocore's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from operator import lt
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus
from xml.parsers import expat
from xml.sax.saxutils import escape

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

PAGE_KEYS = 1000  # S3's own limit

DAMAGED = "DamagedListing"  # the code of an answer that was cut off

_PARSED = "BookmarkPage"
_NOTHING_LEFT = b"<ListBucketResult/>"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HEAD_BYTES = 200
_LAST_CHARACTER = "\U0010ffff"  # its UTF-8 comes after that of any other


class PageError(Exception):
    """Raised when an answer is no whole page of a listing, or not the requested one."""


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """What one request listed: objects in columns, folders (with a delimiter), and whether there is more behind it.

    `times_ms` are ms since 1970 UTC, `etags` are without their quotes. `classes` are the storage classes, empty texts
    where S3 names none; None: not known.
    """

    keys: Sequence[str]
    sizes: npt.NDArray[np.int64]
    times_ms: npt.NDArray[np.int64]
    etags: Sequence[str | None]
    folders: Sequence[str]
    is_truncated: bool
    classes: Sequence[str] | None = None

    @property
    def end(self) -> str:
        """The text after which the next page begins: the last key, or the end of the last folder; may be empty."""
        last_key = self.keys[-1] if self.keys else ""
        # Not "0", which follows "/": a key may be called so ("b0" beside the folder "b/"), and would be left out.
        last_folder = _end_of(self.folders[-1]) if self.folders else ""
        return max(last_key, last_folder)

    def without_passed(self, after: str) -> Page:
        """Return the page without the folders that an earlier one has shown.

        S3 shows a folder once more where a key in it begins with the last character of all.
        """
        folders = [folder for folder in self.folders if _end_of(folder) > after]
        return self if len(folders) == len(self.folders) else replace(self, folders=folders)

    def first(self, count: int) -> Page:
        """Return the page without what comes after so many of its keys."""
        classes = None if self.classes is None else self.classes[:count]
        sizes, times_ms = self.sizes[:count], self.times_ms[:count]
        return Page(self.keys[:count], sizes, times_ms, self.etags[:count], self.folders, False, classes)

    def check(self, prefix: str, after: str) -> None:
        """Make sure that the keys are those that were asked for, in strictly increasing order.

        Raises:
            PageError: otherwise: what is left out or comes twice could not be told.
        """
        for names in (self.keys, self.folders):
            if not names:
                continue
            if not all(map(lt, names, names[1:])):
                raise PageError("its keys are not in strictly increasing order")
            if names is self.keys and names[0] <= after:
                raise PageError(f"its first key {names[0]!r} does not come after {after!r}")
            if not (names[0].startswith(prefix) and names[-1].startswith(prefix)):
                raise PageError(f"it holds keys that do not begin with {prefix!r}")
        if self.is_truncated and not self.keys and not self.folders:
            raise PageError("it is empty and says that there is more")


def _end_of(folder: str) -> str:
    """Return a text that sorts after all keys in a folder, and before those that follow it."""
    return f"{folder}{_LAST_CHARACTER}"


def parse_instead(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: object) -> None:
    """Parse an answer to ListObjectsV2 in botocore's place: a handler of its event before it parses one.

    A damaged answer becomes the error of a server, as botocore has it for such: that is tried again, after a pause.
    Errors are left to botocore.
    """
    if response_dict["status_code"] != 200:
        return
    body = response_dict["body"]
    if b"<Error" in body[:_HEAD_BYTES]:  # S3 may think of one after it has answered 200
        return
    try:
        customized_response_dict[_PARSED] = parse(body)
        response_dict["body"] = _NOTHING_LEFT
    except PageError as error:
        response_dict["status_code"] = 500
        response_dict["body"] = f"<Error><Code>{DAMAGED}</Code><Message>{escape(str(error))}</Message></Error>".encode()


def page_of(answer: Any) -> Page:
    """Return the page that `parse_instead` left in an answer of the client.

    botocore before 1.35, that of Glue 5.0, parses an answer without asking: there the page is made from what it parsed.

    Raises:
        PageError: a part of it is missing.
    """
    page: Page | None = answer.get(_PARSED)
    return _of_parsed(answer) if page is None else page


def _of_parsed(answer: Mapping[str, Any]) -> Page:
    try:
        items = answer.get("Contents", [])
        keys = [item["Key"] for item in items]
        folders = [each["Prefix"] for each in answer.get("CommonPrefixes", [])]
        if answer.get("EncodingType") == "url":
            keys, folders = _decoded(keys), _decoded(folders)
        return Page(
            keys,
            np.array([item["Size"] for item in items], np.int64),
            np.array([(item["LastModified"] - _EPOCH) // timedelta(milliseconds=1) for item in items], np.int64),
            [item.get("ETag", "").strip('"') or None for item in items],
            folders,
            answer["IsTruncated"],
            [item.get("StorageClass", "") for item in items],
        )
    except KeyError as error:
        raise PageError(f"it has no {error}") from error


def parse(body: bytes) -> Page:
    """Read one answer to ListObjectsV2.

    Raises:
        PageError: it is cut off, or says something that is no listing.
    """
    texts = _Texts()
    try:
        texts.read(body)
        return texts.page()
    except (expat.ExpatError, ValueError) as error:
        raise PageError(f"it can't be read ({error})") from error


class _Texts:
    """The texts of the elements that matter, by their names: each in a list, in the order of the document."""

    def __init__(self) -> None:
        self._columns: dict[str, list[str]] = {
            name: [] for name in ("Key", "Size", "LastModified", "ETag", "IsTruncated", "EncodingType", "StorageClass")
        }
        self._folders: list[str] = []
        self._count = 0

    def read(self, body: bytes) -> None:
        """Read a document. The functions in it run for each tag of each key: they do as little as they can."""
        text = ""
        is_in_folder = False
        append_of = {name: column.append for name, column in self._columns.items()}
        etags, classes = self._columns["ETag"], self._columns["StorageClass"]

        def start(name: str, _: object) -> None:
            nonlocal text, is_in_folder
            text = ""
            if name == "CommonPrefixes":
                is_in_folder = True

        def characters(more: str) -> None:
            nonlocal text
            text += more

        def end(name: str) -> None:
            nonlocal is_in_folder
            if name in append_of:
                append_of[name](text)
            elif name == "Contents":
                self._count += 1
                if len(etags) < self._count:
                    etags.append("")
                if len(classes) < self._count:
                    classes.append("")
            elif name == "CommonPrefixes":
                is_in_folder = False
            elif is_in_folder and name == "Prefix":
                self._folders.append(text)

        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = start
        parser.EndElementHandler = end
        parser.CharacterDataHandler = characters
        parser.Parse(body, True)

    def page(self) -> Page:
        """Return what was read, in columns.

        Raises:
            ValueError: a part is missing, or is no number or time.
        """
        keys, sizes, times, etags, truncated, encoding, classes = self._columns.values()
        columns = (keys, sizes, times, etags, classes)
        if truncated not in (["true"], ["false"]) or any(len(column) != self._count for column in columns):
            raise ValueError("a part of it is missing")
        folders = self._folders
        if encoding == ["url"]:
            keys, folders = _decoded(keys), _decoded(folders)
        return Page(
            keys,
            np.fromiter(map(int, sizes), np.int64, self._count),
            _milliseconds(times),
            [etag.strip('"') or None for etag in etags],
            folders,
            truncated == ["true"],
            classes,
        )


def _decoded(names: list[str]) -> list[str]:
    # All at once, which costs a third of one by one; unless a name has a line feed of its own.
    decoded = unquote_plus("\n".join(names), errors="strict").split("\n")
    if len(decoded) == len(names):
        return decoded
    return [unquote_plus(name, errors="strict") for name in names]


def _milliseconds(times: Sequence[str]) -> npt.NDArray[np.int64]:
    if not all(time.endswith("Z") for time in times):
        raise ValueError("a time is not in UTC")
    # numpy reads a column of times in a tenth of what datetime takes for each.
    return np.array([time[:-1] for time in times], "datetime64[ms]").astype(np.int64)

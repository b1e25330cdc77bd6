"""What Glue says of a bookmark: the answer of `aws glue get-job-bookmark`, checked before anything is made of it.

    {"JobBookmarkEntry": {"JobName": ..., "Version": 4, "Run": 3, "Attempt": 0, "RunId": "jr_...", "JobBookmark": ...}}

`JobBookmark` is JSON in a text, with an object for each context. Of files it has one watermark, and no names: when the
run began, how far before that files are told apart by hashes ("the band", in ms), and the hashes of those of them that
were read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from airflow_bookmarks.core.errors import DocumentError
from airflow_bookmarks.core.text.instant import in_utc

FILES_CLASS = "HadoopDataSourceJobBookmarkState"

_OURS = "WATERMARK"  # which Glue does not have, and our own answers do
_HASH = re.compile(r"[0-9a-f]{1,32}")
_WIDEST_BAND = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class GlueFilesState:
    """What Glue has read in one context of files.

    Args:
        run_started_at: when its last committed run began.
        band: how far before that files may have come late.
        included: hashes of the files of the band that were read; each is a number of 128 bits.
    """

    run_started_at: datetime
    band: timedelta
    included: frozenset[int] = frozenset()

    @property
    def read_before(self) -> datetime:
        """What is older counts as read."""
        return self.run_started_at - self.band


@dataclass(frozen=True, slots=True)
class GlueEntry:
    """The bookmark of one job in Glue, after its run `run_id`."""

    job_name: str
    run_id: str
    contexts: Mapping[str, Any]

    def files_state(self, ctx: str) -> GlueFilesState:
        """Return the state of a context of files.

        Raises:
            DocumentError: it is of another class, or malformed.
        """
        state = self.contexts[ctx]
        if not isinstance(state, Mapping) or state.get("jsonClass") != FILES_CLASS:
            named = state.get("jsonClass") if isinstance(state, Mapping) else type(state).__name__
            raise _malformed(
                f"context {ctx!r} has the class {named!r}, and only positions of files ({FILES_CLASS}) can be taken "
                "over: of others Glue does not publish the shape",
                f"Leave it out by its name (--without {ctx}): it then begins with all there is.",
            )
        return _files_state(ctx, state.get("timestamps"))


def read_entry(document: Any) -> GlueEntry:
    """Return what a document says, which is the answer of get-job-bookmark, or the entry in it.

    Raises:
        DocumentError: it is something else, or malformed.

    Example:
        read_entry(json.load(file)).files_state("datasource0").read_before
    """
    entry = document.get("JobBookmarkEntry", document) if isinstance(document, Mapping) else document
    if not isinstance(entry, Mapping) or not isinstance(entry.get("JobBookmark"), str):
        raise _malformed("the document is no answer of 'aws glue get-job-bookmark': it has no JobBookmark, as text")
    for name in ("JobName", "RunId"):
        if not isinstance(entry.get(name), str) or not entry[name]:
            raise _malformed(f"its {name} is {entry.get(name)!r}: expected text")
    try:
        contexts = json.loads(entry["JobBookmark"])
    except (ValueError, RecursionError) as error:
        raise _malformed(f"its JobBookmark is no JSON ({error})") from error
    if not isinstance(contexts, dict) or not contexts:
        raise _malformed("its JobBookmark has no context: that job has no bookmark yet")
    return GlueEntry(entry["JobName"], entry["RunId"], contexts)


def _files_state(ctx: str, timestamps: Any) -> GlueFilesState:
    if not isinstance(timestamps, Mapping) or not all(isinstance(value, str) for value in timestamps.values()):
        raise _malformed(f"context {ctx!r} has no timestamps, as texts by name")
    if _OURS in timestamps:
        raise _malformed(
            f"context {ctx!r} is of this package and not of Glue: it names no files",
            "Carry bookmarks of this package over with 'airflow-bookmarks export' and 'import'.",
        )
    band, hashes = timestamps.get("HIGH_BAND", ""), timestamps.get("INCLUDE_LIST")
    if not (band.isascii() and band.isdigit()) or timedelta(milliseconds=int(band[:15])) > _WIDEST_BAND:
        raise _malformed(f"context {ctx!r} has HIGH_BAND={band!r}: expected milliseconds")
    if hashes is None:
        raise _malformed(f"context {ctx!r} has no INCLUDE_LIST")
    listed = [text.strip() for text in hashes.split(",") if text.strip()]
    if wrong := [text for text in listed if not _HASH.fullmatch(text)]:
        raise _malformed(f"context {ctx!r} has {wrong[0]!r} in its INCLUDE_LIST: expected a hash in hexadecimal digits")
    included = frozenset(int(text, 16) for text in listed)  # Glue drops leading zeros
    started = _time(ctx, timestamps.get("CURR_RUN_START_TIME", ""))
    return GlueFilesState(started, timedelta(milliseconds=int(band)), included)


def _time(ctx: str, text: str) -> datetime:
    time = in_utc(text)
    if time is None:
        raise _malformed(f"context {ctx!r} has CURR_RUN_START_TIME={text!r}: expected a time with a zone")
    return time


def _malformed(what: str, then: str = "Ask Glue again: 'aws glue get-job-bookmark --job-name NAME'.") -> DocumentError:
    return DocumentError(f"the bookmark of Glue can't be taken over: {what}. Nothing was written. {then}")

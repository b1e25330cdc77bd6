"""Select the planned files of a folder by a predicate, which holds whatever Spark lists later.

A frame over a folder is listed when it is made, and again when the session refreshes that folder: if the frame is
cached, an append by the same session or `catalog.refreshByPath` does it. A list of excluded files would let in files
that came meanwhile, so the predicate lists what is included.

It prunes files before they are opened, and is evaluated for each row after that, so it has to be cheap for any number
of files: a hash table with one lookup.

    bucket = pmod(xxhash64(_metadata.file_path), buckets)      a file is planned if its hash is in its bucket

A later file has the hash of one of n planned ones with probability n / 2^64, the same as for the ledger to take it for
one that was read.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np
from pyspark.sql import Column
from pyspark.sql import functions as F

from airflow_bookmarks.core.ledger.xxhash64 import xxhash64

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from airflow_bookmarks.files.filesystem import FileSystem

_IN_A_BUCKET = 4
_MOST_ASKED = 200  # names that Spark is asked to spell
_PLAIN = re.compile(r"[A-Za-z0-9_./=:-]+")
# What java.net.URI leaves as it is in a path, besides letters, digits and `_.-~`.
_LEGAL_IN_URI = "/!$&'()*+,;=:@"
_SPACES_AND_CONTROLS = frozenset(["Zs", "Zl", "Zp", "Cc"])


def is_planned(names: Sequence[str]) -> Column:
    """Return the predicate for files that have these `_metadata.file_path`."""
    hashes = xxhash64(names)
    buckets: list[list[int]] = [[] for _ in range(max(1, len(names) // _IN_A_BUCKET))]
    for bucket, value in zip(np.mod(hashes, len(buckets)).tolist(), hashes.tolist(), strict=True):
        buckets[bucket].append(value)
    # One text, which Spark turns into a table when it plans: a literal for each of a million files would take minutes.
    table = F.from_json(F.lit(json.dumps(buckets, separators=(",", ":"))), "array<array<bigint>>")
    found = F.xxhash64(F.col("_metadata.file_path"))
    number = F.pmod(found, F.lit(len(buckets))) + F.lit(1)
    return F.array_contains(F.element_at(table, number.cast("int")), found)


def is_spelled_as_planned(spark: SparkSession, files: FileSystem, paths: Sequence[str]) -> bool:
    """Whether Spark spells planned files as `metadata_path` does: one whose name differs would not be read.

    Asked is of each set of unusual characters the first file whose path has these.
    """
    asked: dict[frozenset[str], str] = {}
    for path in paths:
        asked.setdefault(frozenset(_PLAIN.sub("", path)), path)
    if len(asked) > _MOST_ASKED:
        return False
    frame = spark.read.schema("value STRING").text([files.pattern(path) for path in asked.values()])
    return {metadata_path(files, path) for path in asked.values()} == set(map(_one_slash, frame.inputFiles()))


def metadata_path(files: FileSystem, path: str) -> str:
    """Return a path as Spark shows it in `_metadata.file_path`.

    That is java.net.URI's spelling: one slash after a scheme without a host, in percent what is not legal there, but
    letters of other scripts as they are.
    """
    uri = _one_slash(files.uri(path))
    return uri if _PLAIN.fullmatch(uri) else "".join(map(_in_uri, uri))


def _one_slash(uri: str) -> str:
    return uri.replace(":///", ":/", 1)


def _in_uri(character: str) -> str:
    if character.isascii() or unicodedata.category(character) in _SPACES_AND_CONTROLS:
        return quote(character, safe=_LEGAL_IN_URI)
    return character

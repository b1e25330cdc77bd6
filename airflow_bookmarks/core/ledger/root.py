"""The root of a file ledger: the document that names its segments, or holds them, as a run keeps it.

    {"blake2b":"<32 hex digits>","ledger":<body>}

The checksum is over the bytes of the body as they stand, so it is checked before anything is parsed.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from airflow_bookmarks.core.ledger.quarantine import Quarantine
from airflow_bookmarks.core.ledger.segment import Segment, corrupt, opened
from airflow_bookmarks.core.text.stored_json import read_json

_PLAIN_FORMAT = 1
_BOUNDED_FORMAT = 2  # a reader of format 1 would read again what was forgotten
_HOLDING_FORMAT = 3  # a reader of formats 1 and 2 would read what is in quarantine, and lose the record of it

_OPENING, _MIDDLE, _CLOSING = b'{"blake2b":"', b'","ledger":', b"}"
_BODY_START = len(_OPENING) + 32 + len(_MIDDLE)


@dataclass(frozen=True, slots=True)
class NamedEntry:
    """The entry of a path that is kept by its full name."""

    version: str
    modified_ms: int


@dataclass(frozen=True, slots=True)
class ListedSegment:
    """A segment as the root lists it. `segment` is None until it is needed; `is_stored` tells that a blob holds it."""

    id: str
    count: int
    tier: int
    is_stored: bool
    segment: Segment | None

    def opened(self, data: bytes | Segment | None) -> Segment:
        """Return the segment that a store has kept under this id.

        Raises:
            StateCorruptError: it is missing or damaged, or has other entries than the root says.
        """
        if data is None:
            raise corrupt(f"the ledger segment {self.id} is missing from the store")
        segment = opened(data, self.id)
        if len(segment) != self.count:
            raise corrupt(f"the ledger segment {self.id} has {len(segment)} files, and the root says {self.count}")
        return segment


@dataclass(frozen=True, slots=True)
class LedgerRoot:
    """What a root says; the fields are those of `Ledger`."""

    newest_ms: int | None
    listed: tuple[ListedSegment, ...]
    names: Mapping[str, NamedEntry]
    forgotten_before_ms: int | None = None
    quarantine: Quarantine = field(default_factory=Quarantine)
    let_out: frozenset[str] = frozenset()

    def __len__(self) -> int:
        """Return the number of entries."""
        return sum(entry.count for entry in self.listed) + len(self.names)

    def encode(self, inline: Collection[int]) -> bytes:
        """Return the document, which holds the segments at the places `inline` of `listed`; the others it names."""
        before, held = self.forgotten_before_ms, self.quarantine.rows()
        body = {
            **({} if before is None else {"forgotten_before_ms": before}),
            **({"quarantine": held} if held else {}),
            **({"let_out": sorted(self.let_out)} if self.let_out else {}),
            "count": len(self),
            "format": _HOLDING_FORMAT if held else _PLAIN_FORMAT if before is None else _BOUNDED_FORMAT,
            "names": [[name, entry.version, entry.modified_ms] for name, entry in sorted(self.names.items())],
            "newest_ms": self.newest_ms,
            "segments": [
                [e.id, e.count, e.tier, *([text_of(e.segment)] if index in inline and e.segment is not None else [])]
                for index, e in enumerate(self.listed)
            ],
        }
        content = json.dumps(body, sort_keys=True, separators=(",", ":")).encode("ascii")
        return _OPENING + _checksum(content) + _MIDDLE + content + _CLOSING

    @classmethod
    def parse(cls, document: bytes) -> Self:
        """Return what `encode` wrote, in this version or an earlier one.

        Raises:
            StateCorruptError: it is damaged, or of a format that this version does not know.
        """
        try:
            body = _checked_body(document)
            listed = tuple(_parse_listed(*entry) for entry in body["segments"])
            names = {name: NamedEntry(version, modified_ms) for name, version, modified_ms in body["names"]}
            bound, held = _parse_bound(body), _parse_held(body)
            root = cls(body["newest_ms"], listed, names, bound, held, frozenset(map(str, body.get("let_out", ()))))
            is_whole = body["count"] == len(root)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise corrupt(f"the root of a ledger has a part that means nothing ({error!r})") from error
        if not is_whole:
            raise corrupt("the root of a ledger counts other entries than it lists")
        return root


def text_of(segment: Segment) -> str:
    """Return a segment as a root holds it."""
    return base64.b64encode(segment.data).decode("ascii")


def _checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).hexdigest().encode("ascii")


def _checked_body(root: bytes) -> dict[str, Any]:
    content = root[_BODY_START : -len(_CLOSING)]
    if root != _OPENING + _checksum(content) + _MIDDLE + content + _CLOSING:
        raise corrupt("the root of a ledger does not match its checksum, or is no root")
    body: dict[str, Any] = read_json(content, "ledger")
    if body["format"] not in (_PLAIN_FORMAT, _BOUNDED_FORMAT, _HOLDING_FORMAT):
        raise corrupt(
            f"the root of a ledger has format {body['format']}, and this version of airflow_bookmarks knows formats "
            f"{_PLAIN_FORMAT} to {_HOLDING_FORMAT} (was it written by a newer one?)"
        )
    return body


def _parse_bound(body: Mapping[str, Any]) -> int | None:
    if body["format"] == _BOUNDED_FORMAT:
        bound = body["forgotten_before_ms"]
    else:
        bound = body.get("forgotten_before_ms") if body["format"] == _HOLDING_FORMAT else None
    if bound is not None and not isinstance(bound, int):
        raise TypeError(f"forgotten_before_ms is {bound!r}")
    return bound


def _parse_held(body: Mapping[str, Any]) -> Quarantine:
    return Quarantine.parse(body["quarantine"]) if body["format"] == _HOLDING_FORMAT else Quarantine()


def _parse_listed(segment_id: str, count: int, tier: int, text: str | None = None) -> ListedSegment:
    if text is None:
        return ListedSegment(segment_id, count, tier, True, None)
    inline = ListedSegment(segment_id, count, tier, False, None)
    return replace(inline, segment=inline.opened(base64.b64decode(text, validate=True)))

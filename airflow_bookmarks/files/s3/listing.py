"""List S3 by several requests at a time, in the order of the keys.

S3 lists 1,000 keys a request, from any key on. So the keys are shared out in stretches: a stretch is what lies after
one text up to and including another, and is read page by page. It begins with one; as long as connections are idle,
the stretch that has given most so far is cut where keys lie ahead of it:

    |-- read --> .......................................|
    |-- read --> ......|-- read --> .......|-- read --> |      cut at folders, else at a character of the names

A cut in a wrong place costs a request, and never a key: the stretches lie side by side whatever S3 holds.

Where folders may be pruned, a listing begins folder by folder instead: a request shows the folders directly in one, and
only those that are entered are asked for, several at a time. Below a folder in which nothing is pruned it is a stretch.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from string import ascii_lowercase, ascii_uppercase, digits
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from airflow_bookmarks.files.s3.page import PAGE_KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from airflow_bookmarks.files.s3.page import Page

_PAGES_ALONE = 4  # a smaller listing is over before a cut has paid for itself
_PATIENCE_GROWS = 4  # with each cut: so many times the pages until the next one
_HEX = "abcdef"

_T = TypeVar("_T")


class Descent(Enum):
    """How far a listing goes into a folder."""

    NONE = 0
    BY_FOLDER = 1  # folders in it may be pruned
    WHOLE = 2  # everything below it is listed


class Fetch(Protocol):
    """One request: the page of the keys that begin with `prefix` and come after `after`."""

    def __call__(self, prefix: str, after: str, *, delimiter: str = "", max_keys: int = PAGE_KEYS) -> Page: ...


@dataclass(slots=True)
class _Stretch(Generic[_T]):
    """Keys below `prefix` after `cursor`, up to and including `until` (None: to the end).

    `kept` is what became of the pages before. It is cut only when it has given `patience` pages since it was cut last,
    so that cuts stay few; with a `delimiter`, which leaves out what is in the folders there, it is never cut.
    """

    prefix: str
    cursor: str
    until: str | None
    patience: int = _PAGES_ALONE
    delimiter: str = ""
    kept: list[_T] = field(default_factory=list)
    since_cut: int = 0
    is_done: bool = False
    is_searched: bool = False
    start: str = field(init=False)

    def __post_init__(self) -> None:
        self.start = self.cursor

    def add(self, page: Page) -> Page:
        """Take what of a page lies in here; return that."""
        count = len(page.keys) if self.until is None else bisect_right(page.keys, self.until)
        self.is_done = not page.is_truncated or count < len(page.keys)
        mine = page if count == len(page.keys) else page.first(count)
        self.cursor = mine.end or self.cursor
        self.is_done = self.is_done or self.cursor == self.until
        self.since_cut += 1
        return mine

    def cut(self, places: Sequence[str], pieces: int) -> list[_Stretch[_T]]:
        """Keep what lies before the first of up to `pieces` of these places; return the rest, in as many stretches."""
        ahead = [p for p in places if self.cursor < p and (self.until is None or p < self.until)]
        self.is_searched, self.since_cut, self.patience = False, 0, _PATIENCE_GROWS * self.patience
        count = min(pieces, len(ahead))
        if count == 0 or self.is_done:
            return []
        bounds: list[str | None] = [ahead[(i + 1) * len(ahead) // (count + 1)] for i in range(count)]
        bounds = [*dict.fromkeys(bounds), self.until]
        self.until = bounds[0]
        return [
            _Stretch[_T](self.prefix, after, until, self.patience)
            for after, until in pairwise(bounds)
            if after is not None
        ]


def list_pages(fetch: Fetch, prefix: str, connections: int, keep: Callable[[Page], _T]) -> list[_T]:
    """Return what `keep` makes of the pages below a prefix, in the order of their keys.

    Args:
        connections: how many requests go at a time, at most.
        keep: is given each page once, in any order, by the calling thread; each key comes in one of them.

    Raises:
        Exception: what `fetch` raised; a partly failed listing is not returned.
    """
    first = _Stretch[_T](prefix, "", None)
    pages_alone = 0
    while not first.is_done and (pages_alone < _PAGES_ALONE or connections == 1):
        first.kept.append(keep(first.add(fetch(prefix, first.cursor))))
        pages_alone += 1
    if first.is_done:
        return first.kept
    with ThreadPoolExecutor(connections, "bookmark-s3-list") as pool:
        try:
            stretches = _Spread(pool, fetch, connections, keep).run(first)
        finally:
            pool.shutdown(cancel_futures=True)
    return [part for stretch in sorted(stretches, key=lambda s: s.start) for part in stretch.kept]


def list_folders(
    fetch: Fetch, prefix: str, connections: int, keep: Callable[[Page], _T], descends: Callable[[str], Descent]
) -> list[_T]:
    """Return what `keep` makes of the pages below a prefix, folder by folder, in no order that matters.

    Args:
        descends: says of each folder that a page shows, by its whole key, how far it is gone into.

    The rest is as for `list_pages`.
    """
    first = _Stretch[_T](prefix, "", None, delimiter="/")
    with ThreadPoolExecutor(connections, "bookmark-s3-list") as pool:
        try:
            stretches = _Spread(pool, fetch, connections, keep, descends).run(first)
        finally:
            pool.shutdown(cancel_futures=True)
    return [part for stretch in sorted(stretches, key=lambda s: (s.prefix, s.start)) for part in stretch.kept]


def _descends_nowhere(_: str) -> Descent:
    return Descent.NONE


class _Spread(Generic[_T]):
    """Reads stretches at the same time. Only this thread changes them: the others make requests."""

    def __init__(
        self,
        pool: ThreadPoolExecutor,
        fetch: Fetch,
        connections: int,
        keep: Callable[[Page], _T],
        descends: Callable[[str], Descent] = _descends_nowhere,
    ) -> None:
        self._pool, self._fetch, self._descends = pool, fetch, descends
        self._connections, self._keep = connections, keep
        self._reading: dict[Future[Page], _Stretch[_T]] = {}
        self._searching: dict[Future[list[str]], _Stretch[_T]] = {}

    def run(self, first: _Stretch[_T]) -> list[_Stretch[_T]]:
        """Read one stretch to its end, and return it with all that were cut off from it."""
        stretches = [first]
        self._go_on(first)
        self._search(stretches)
        while self._reading:
            waiting: set[Future[Any]] = {*self._reading, *self._searching}
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for page in [future for future in self._reading if future in done]:
                stretches += self._take(self._reading.pop(page), page.result())
            for places in [future for future in self._searching if future in done]:
                stretch = self._searching.pop(places)
                for piece in stretch.cut(places.result(), self._idle() + 1):
                    stretches.append(piece)
                    self._go_on(piece)
            self._search(stretches)
        for left in self._searching:
            left.cancel()
        return stretches

    def _take(self, stretch: _Stretch[_T], page: Page) -> list[_Stretch[_T]]:
        """Keep a page; return what begins with it: the folders in it that are gone into."""
        mine = stretch.add(page)
        if not stretch.is_done:
            self._go_on(stretch)  # first of all: the next request is sent while this page is processed
        stretch.kept.append(self._keep(mine))
        below = [
            _Stretch[_T](folder, "", None, delimiter="" if how is Descent.WHOLE else stretch.delimiter)
            for folder in mine.folders
            if (how := self._descends(folder)) is not Descent.NONE
        ]
        for each in below:
            self._go_on(each)
        return below

    def _go_on(self, stretch: _Stretch[_T]) -> None:
        request = self._pool.submit(self._fetch, stretch.prefix, stretch.cursor, delimiter=stretch.delimiter)
        self._reading[request] = stretch

    def _idle(self) -> int:
        return self._connections - len(self._reading) - len(self._searching)

    def _search(self, stretches: Sequence[_Stretch[_T]]) -> None:
        """Look for places to cut at, where connections are idle: in the stretch that has given most."""
        if self._idle() <= 0:
            return
        rich = [s for s in stretches if not (s.is_done or s.is_searched or s.delimiter) and s.since_cut >= s.patience]
        if rich:
            stretch = max(rich, key=lambda s: s.since_cut)
            stretch.is_searched = True
            search = self._pool.submit(places_ahead, self._fetch, stretch.prefix, stretch.cursor, stretch.until)
            self._searching[search] = stretch


def places_ahead(fetch: Fetch, prefix: str, cursor: str, until: str | None) -> list[str]:
    """Return places between `cursor` and `until` behind which keys lie, in order: folders, else beginnings of names."""
    for folder in _folders_of(prefix, cursor, until):
        entry, slash, _ = cursor[len(folder) :].partition("/")
        # "0" follows "/": what comes after it lies behind the whole folder that the cursor is in.
        after = f"{folder}{entry}0" if slash else cursor
        page = fetch(folder, after, delimiter="/")
        places = [place for place in page.folders if cursor < place and (until is None or place < until)]
        if places:
            return places
    return _beginnings_ahead(fetch, prefix, cursor, until)


def _folders_of(prefix: str, cursor: str, until: str | None) -> Iterator[str]:
    """Yield the folders that the cursor lies in, from the outermost that can hold a cut inwards."""
    start = len(prefix) if until is None else max(len(prefix), _common(cursor, until).rfind("/") + 1)
    yield cursor[:start]
    while (slash := cursor.find("/", start)) >= 0:
        start = slash + 1
        yield cursor[:start]


def _beginnings_ahead(fetch: Fetch, prefix: str, cursor: str, until: str | None) -> list[str]:
    """Return how names ahead begin, by the first character at which they part from the cursor.

    A beginning one character longer leaves more keys ahead of it, so the shortest that leaves any is found by halves.
    """

    def ahead(length: int, character: str) -> str | None:
        following = _next_character(character)
        if following is None:
            return None
        keys = fetch(prefix, cursor[:length] + following, max_keys=1).keys
        return keys[0] if keys and (until is None or keys[0] < until) else None

    low = len(prefix) if until is None else max(len(prefix), len(_common(cursor, until)))
    high = len(cursor)
    found: tuple[int, str] | None = None
    while low < high:
        middle = (low + high) // 2
        key = ahead(middle, cursor[middle])
        if key is None:
            low = middle + 1
        else:
            found, high = (middle, key), middle
    if found is None:
        return []
    length, key = found
    places = {cursor[:length] + character for character in _alphabet_after(cursor[length])} | {key[: length + 1]}
    if cursor[length] in digits:
        beyond = ahead(length, "9")
        if beyond is not None and beyond[length : length + 1] in _HEX:  # names that are hexadecimal
            places |= {cursor[:length] + character for character in _HEX}
    return sorted(place for place in places if cursor < place and (until is None or place < until))


def _common(one: str, other: str) -> str:
    # Character by character on purpose: keys have no folders of their own.
    return os.path.commonprefix([one, other])  # noqa: RUF071 (of texts, and not of folders)


def _next_character(character: str) -> str | None:
    number = ord(character) + 1
    if 0xD800 <= number <= 0xDFFF:  # these are no characters, and have no UTF-8
        number = 0xE000
    return None if number > 0x10FFFF else chr(number)


def _alphabet_after(character: str) -> str:
    for alphabet in (digits, ascii_lowercase, ascii_uppercase):
        if character in alphabet:
            return alphabet[alphabet.index(character) + 1 :]
    return ""

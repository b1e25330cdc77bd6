"""What a listing asks of S3 and takes from its pages: which keys are input, and which folders are gone into."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np

from airflow_bookmarks.core.selection.listing import Listing
from airflow_bookmarks.core.selection.reason import EXCLUDED
from airflow_bookmarks.files.filesystem import Pruning
from airflow_bookmarks.files.s3.address import SCHEME
from airflow_bookmarks.files.s3.listing import Descent
from airflow_bookmarks.files.s3.page import PAGE_KEYS, Page, page_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from mypy_boto3_s3.client import S3Client

    from airflow_bookmarks.files.input import Sieve
    from airflow_bookmarks.files.s3.address import S3Address

log = logging.getLogger(__name__)

STANDARD = "STANDARD"  # the storage class of what names none
_PROGRESS_EVERY = 100_000


class PageRequests:
    """Lists a bucket, one page by each call."""

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._client, self._bucket = client, bucket

    def __call__(self, prefix: str, after: str, *, delimiter: str = "", max_keys: int = PAGE_KEYS) -> Page:
        wanted: dict[str, Any] = {"Prefix": prefix, "StartAfter": after, "MaxKeys": max_keys}
        if delimiter:
            wanted["Delimiter"] = delimiter
        # By URL encoding: keys may hold characters that XML has no way to say.
        answer = self._client.list_objects_v2(Bucket=self._bucket, EncodingType="url", **wanted)
        page = page_of(answer).without_passed(after)
        page.check(prefix, after)
        return page


def pages_of(fetch: PageRequests, prefix: str, *, delimiter: str = "", max_keys: int = PAGE_KEYS) -> Iterator[Page]:
    """Yield the pages below a prefix, in the order of the keys."""
    after = ""
    while True:
        page = fetch(prefix, after, delimiter=delimiter, max_keys=max_keys)
        yield page
        if not page.is_truncated:
            return
        after = page.end


class InputColumns:
    """Makes of each page the columns of a listing, without what is no input.

    Args:
        without: storage classes whose objects are left out, and counted as excluded.
    """

    def __init__(
        self,
        root: S3Address,
        sieve: Sieve,
        saw: Callable[[int], None] | None,
        without: Collection[str] = (),
    ) -> None:
        self._without = without
        self.sieve = sieve
        self.is_nothing_seen = True
        self._keys_seen, self._saw = 0, saw
        self._root = root
        self._skip = len(root.inside)
        self._base = f"{SCHEME}://{root.bucket}/"

    def of(self, page: Page) -> Listing:
        """Return the input files of a page."""
        self._note(page)
        takes, skip, base = self.sieve.takes, self._skip, self._base
        rows = [row for row, key in enumerate(page.keys) if takes(key[skip:])]
        if self._without:
            rows = self._in_other_classes(page, rows)
        if len(rows) == len(page.keys):
            return Listing([base + key for key in page.keys], page.sizes, page.times_ms, page.etags)
        index = np.array(rows, np.intp)
        return Listing(
            [base + page.keys[row] for row in rows],
            page.sizes[index],
            page.times_ms[index],
            [page.etags[row] for row in rows],
        )

    def _in_other_classes(self, page: Page, rows: list[int]) -> list[int]:
        classes = page.classes or [""] * len(page.keys)
        kept = [row for row in rows if (classes[row] or STANDARD) not in self._without]
        if len(kept) < len(rows):
            self.sieve.counts[EXCLUDED] = self.sieve.counts.get(EXCLUDED, 0) + len(rows) - len(kept)
        return kept

    def _note(self, page: Page) -> None:
        self.is_nothing_seen = self.is_nothing_seen and not page.keys and not page.folders
        if self._saw is not None:
            self._saw(len(page.keys))
            return
        before, self._keys_seen = self._keys_seen, self._keys_seen + len(page.keys)
        if before // _PROGRESS_EVERY < self._keys_seen // _PROGRESS_EVERY:
            log.info("bookmark: listing %s: %d keys so far", self._root, self._keys_seen)


class FolderDescents:
    """Says how far a listing goes into the folders that it comes upon, and counts those that it does not enter."""

    def __init__(self, root: S3Address, sieve: Sieve, enters: Callable[[str], bool]) -> None:
        self.pruned = 0
        self._skip, self._sieve, self._enters = len(root.inside), sieve, enters

    def into(self, prefix: str) -> Descent:
        """Decide by the prefix that S3 shows for a folder."""
        folder = prefix[self._skip : -1]
        if not all(folder.split("/")):  # a key with `//` in it, which is no folder that could be named
            return Descent.WHOLE
        if self._sieve.hides(folder):
            return Descent.NONE
        if not self._enters(folder):
            self.pruned += 1
            return Descent.NONE
        is_whole = isinstance(self._enters, Pruning) and self._enters.is_whole(folder)
        return Descent.WHOLE if is_whole else Descent.BY_FOLDER


def joined(parts: Sequence[Listing]) -> Listing:
    """Return one listing of several, which lie side by side."""
    paths: list[str] = []
    etags: list[str | None] = []
    for part in parts:
        paths += part.paths
        etags += part.etags or ()
    return Listing(
        paths,
        np.concatenate([np.empty(0, np.int64), *(part.sizes for part in parts)]),
        np.concatenate([np.empty(0, np.int64), *(part.times_ms for part in parts)]),
        etags if any(etag is not None for etag in etags) else None,
    )

"""The request rate of a file store: how many requests it bears at a time, and what one request returns."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_WAITING_PER_THREAD = 2  # the next one is ready when a thread comes back, and few are started in vain before an error

_S = TypeVar("_S")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Concurrency:
    """What a store bears: `at_once` requests at a time; one request of a listing tells of up to `listed` files.

    The default is that of a disk: one after the other, and a listing that stats each file by itself.
    """

    at_once: int = 1
    listed: int = 1

    def is_listing_cheaper(self, files: int, roots: int, listed: int) -> bool:
        """Whether listing `roots` again, which held `listed` files, takes fewer requests than checking `files` files.

        Example:
            >>> s3 = Pace(at_once=16, listed=1000)
            >>> s3.is_listing_cheaper(files=100_000, roots=1, listed=1_000_000)
            True
            >>> s3.is_listing_cheaper(files=100, roots=1, listed=1_000_000)
            False
        """
        return roots + listed // self.listed < files

    def each(self, request: Callable[[_S], _T], items: Iterable[_S], then: Callable[[_S, _T], None]) -> None:
        """Make a request for each item, `at_once` at a time, and give `then` each item with its answer.

        `then` is called by the calling thread, as the answers come in. After an error nothing more begins; it is raised
        when what was under way has ended.
        """
        if self.at_once == 1:
            for item in items:
                then(item, request(item))
            return
        with ThreadPoolExecutor(self.at_once, "bookmark-files") as pool:
            under_way: dict[Future[_T], _S] = {}
            try:
                for item in items:
                    if len(under_way) >= _WAITING_PER_THREAD * self.at_once:
                        _take_answers(under_way, then)
                    under_way[pool.submit(request, item)] = item
                while under_way:
                    _take_answers(under_way, then)
            finally:
                pool.shutdown(cancel_futures=True)


def _take_answers(under_way: dict[Future[_T], _S], then: Callable[[_S, _T], None]) -> None:
    done, _ = wait(under_way, return_when=FIRST_COMPLETED)
    for future in [future for future in under_way if future in done]:
        then(under_way.pop(future), future.result())

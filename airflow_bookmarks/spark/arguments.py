"""Combine the arguments of a run from script and operator: each is given in one of the two, or equally in both."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from random import SystemRandom
from typing import TYPE_CHECKING, cast

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.job import RunIdentity, check_name, check_run_id
from airflow_bookmarks.core.option import Choice, OnPartial, OnUnused, Option, check_choice
from airflow_bookmarks.core.rules.shard import Shard, ShardShare, shard_name
from airflow_bookmarks.core.rules.start import BEGINNING, Start
from airflow_bookmarks.core.settings import PREFIX, Settings, check_versions
from airflow_bookmarks.core.text.instant import utc_now
from airflow_bookmarks.core.text.ulid import new_ulid
from airflow_bookmarks.lifecycle.protocol.acquire import OnConflict
from airflow_bookmarks.lifecycle.state.manifest import check_manifest_uri
from airflow_bookmarks.store.bookmark_store import BookmarkStore, open_store
from airflow_bookmarks.store.object_store import check_state_uri
from airflow_bookmarks.store.uri import StoreAddress
from airflow_bookmarks.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of `BookmarkedJob` in force; `upstreams` and `untils` are what the operator declared."""

    name: str
    choice: Choice
    identity: RunIdentity
    on_conflict: OnConflict
    on_unused: OnUnused
    on_partial: OnPartial
    wait_for: timedelta
    replay: int | None
    start: Start
    share: ShardShare | None
    upstreams: tuple[str, ...]
    untils: Mapping[str, int]
    manifest_uri: str | None
    store: BookmarkStore

    @classmethod
    def of(
        cls,
        settings: Settings,
        *,
        name: str | None,
        store: str | BookmarkStore | None,
        option: str | None,
        from_run: str | int | None,
        to_run: str | int | None,
        run_id: str | None,
        attempt: int | None,
        replay: int | None,
        start: str | datetime | None,
        shard: Shard | None,
        on_conflict: OnConflict | None,
        wait_for: timedelta,
        state_uri: str | None,
        manifest_uri: str | None,
        on_unused: OnUnused | None,
        on_partial: OnPartial,
    ) -> Arguments:
        """Combine what the script gives with what arrived in `settings`; the store is opened last.

        Raises:
            OptionError: an unknown or contradictory argument or setting; nothing was read or changed.
            VersionMismatchError: the worker, which wrote the settings, has another major version.
        """
        check_versions(settings.version, __version__)
        key = check_name("job", _required(_one("name", name, "job", settings.job)))
        chosen = _one("option", _option(option), "option", _option(settings.option))
        choice = Choice.of(
            chosen or Option.ENABLE,
            _one("from_run", _text(from_run), "from", settings.from_run),
            _one("to_run", _text(to_run), "to", settings.to_run),
        )
        log.info("bookmark %s: option %s (%s)", key, choice.option.value, "given" if chosen else "default")
        again = _replay(_one("replay", _text(replay), "replay", settings.replay), choice)
        conflict = _one("on_conflict", on_conflict, "on_conflict", settings.on_conflict) or "fail"
        check_choice("on_conflict", conflict, OnConflict)
        unused = _one("on_unused", on_unused, "on_unused", settings.on_unused) or "warn"
        check_choice("on_unused", unused, OnUnused)
        check_choice("on_partial", on_partial, OnPartial)
        manifests = _one("manifest_uri", manifest_uri, "manifest_uri", settings.manifest_uri)
        share = _share(shard, settings.shard, again)
        if share is not None:
            shard_name(key, 0)  # the name has to have room for it
        return cls(
            name=key,
            choice=choice,
            identity=_identity(settings, run_id, attempt),
            on_conflict="wait" if conflict == "wait" else "fail",
            on_unused=cast("OnUnused", unused),
            on_partial=on_partial,
            wait_for=wait_for,
            replay=again,
            start=_start(start, settings.start),
            share=share,
            upstreams=settings.upstreams(),
            untils=settings.untils(),
            manifest_uri=None if manifests is None else check_manifest_uri(manifests),
            store=_open(store, settings.store, _one("state_uri", state_uri, "state_uri", settings.state_uri)),
        )


def _one(argument: str, given: str | None, setting: str, travelled: str | None) -> str | None:
    """Return the one value of an argument that may come from the script and from the operator."""
    given = given or None
    if given is not None and travelled is not None and given != travelled:
        raise OptionError(
            f"the script says {argument}={given!r} and the operator {PREFIX}{setting}={travelled!r}. Nothing was "
            "read or changed. Leave one of them out."
        )
    return given if given is not None else travelled


def _option(text: str | None) -> str | None:
    """Return an option in our spelling, so that Glue's of the one place is no contradiction to ours of the other."""
    return Option.parse(text).value if text else None


def _required(name: str | None) -> str:
    if name is None:
        raise OptionError(
            f"no job: give BookmarkedJob(name=...) or let the operator set {PREFIX}job, which is read from the Spark "
            "session: open that first. On Spark Connect settings come by argument. Nothing was read or changed."
        )
    return name


def _identity(settings: Settings, run_id: str | None, attempt: int | None) -> RunIdentity:
    whole = replace(
        settings,
        run_id=_one("run_id", run_id, "run_id", settings.run_id) or f"local/{new_ulid(utc_now(), SystemRandom())}",
        attempt=_one("attempt", _text(attempt), "attempt", settings.attempt),
    )
    return whole.identity(check_run_id(whole.run_id or ""))


def _start(given: str | datetime | None, travelled: str | None) -> Start:
    texts = [Start.of(value).text if value else None for value in (given, travelled)]
    text = _one("start", texts[0], "start", texts[1])
    return BEGINNING if text is None else Start.of(text)


def _share(given: Shard | None, travelled: str | None, replay: int | None) -> ShardShare | None:
    texts = [None if value is None else ShardShare.of(value).text for value in (given, travelled)]
    text = _one("shard", texts[0], "shard", texts[1])
    if text is not None and replay is not None:
        raise OptionError(
            f"replay={replay} with shard={text!r}: each virtual shard has run numbers of its own. Nothing was read or "
            "changed. Replay a shard by its own name."
        )
    return None if text is None else ShardShare.of(text)


def _replay(text: str | None, choice: Choice) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 10**10):
        raise OptionError(f"replay={text!r}: expected the number of a run. Nothing was read or changed.")
    if choice.option is not Option.ENABLE:
        raise OptionError(
            f"replay={text} with option {choice.option.value!r}: a replay commits. Nothing was read or changed. Use "
            "'enable', or 'pause' with from and to, which reads again and changes nothing."
        )
    return int(text)


def _open(given: str | BookmarkStore | None, travelled: str | None, state_uri: str | None) -> BookmarkStore:
    if isinstance(given, BookmarkStore):
        # A test, or a notebook, hands over a store of its own on purpose; a task of Airflow that of its connection.
        if travelled is not None and not _is_of(given, travelled):
            log.warning(
                "bookmark: the script gives an open store, of namespace %r; the one of the operator (%sstore) is not "
                "looked at. Leave out one of them if they are not the same",
                given.namespace,
                PREFIX,
            )
        if state_uri is not None and check_state_uri(state_uri) != given.blobs.state_uri:
            raise OptionError(
                f"state_uri={state_uri!r} is given beside an open store, whose state_uri is {given.blobs.state_uri!r}. "
                "Nothing was read or changed. Say it where the store is opened: open_store('...?state_uri=...')."
            )
        return given
    uri = _one("store", given, "store", travelled)
    if uri is None:
        raise OptionError(
            f"no store: give BookmarkedJob(store=...) or let the operator set {PREFIX}store, e.g. "
            "'dynamodb://bookmarks?region=eu-west-1'. Nothing was read or changed."
        )
    if state_uri is None:
        return open_store(uri)
    return open_store(str(StoreAddress.parse(uri).with_state_uri(state_uri, f"the script, or {PREFIX}state_uri,")))


def _is_of(store: BookmarkStore, uri: str) -> bool:
    """Whether an open store is the one that a URI names; False if that can't be determined."""
    return store.address is not None and replace(store.address, create=False) == replace(
        StoreAddress.parse(uri), create=False
    )


def _text(value: str | int | None) -> str | None:
    return None if value is None else str(value)

"""Bites in what is staged, published, cleaned and consumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from airflow_bookmarks.core.files.file_list import decode_moves, decode_paths
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.run import RunKey, RunState
from airflow_bookmarks.core.timeline import SelectedRuns
from airflow_bookmarks.files.opener import open_to_change
from airflow_bookmarks.lifecycle.history import timeline_switch as turn
from airflow_bookmarks.lifecycle.protocol import cleanup as clean
from airflow_bookmarks.lifecycle.protocol import finish, partial, publish, recover
from airflow_bookmarks.lifecycle.run import enabled as active_run
from airflow_bookmarks.lifecycle.run import leased
from airflow_bookmarks.lifecycle.run.detached import DetachedRun
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.sinks.clean import CleanList
from airflow_bookmarks.sinks.files.changes import FileChanges
from airflow_bookmarks.sinks.files.publish import move_all
from airflow_bookmarks.sinks.files.sink import FilesSink
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sources.upstream import rewind
from airflow_bookmarks.sources.upstream import source as upstream
from airflow_bookmarks.sources.upstream.job import UpstreamJob
from airflow_bookmarks.sources.upstream.selection import living_among
from airflow_bookmarks.sources.upstream.source import UpstreamSource
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.chaos.bites.bite import TWO_SINKS, bite, put, take
from tests.chaos.sim.files import FaultyFiles

# ---- staging


@bite("each run item stages in a place of its own")
def one_place_for_two_items() -> None:
    stage = FilesSink.stage

    def shared(self: FilesSink, territory: Any, key: RunKey, output: str, request: Any) -> Any:
        return stage(self, territory, RunKey(key.number, 0), output, request)

    put(FilesSink, "stage", shared)


@bite("staging of lower fences is swept after the publish: who stages late is swept too")
def discarded_instead_of_swept() -> None:
    abandon = BookmarkStore.abandon

    def discard(self: Any, grant: Any, run: Any) -> None:
        abandon(self, grant, run)
        for output in run.outputs.values():
            open_to_change(output.place).remove(output.place)

    put(BookmarkStore, "abandon", discard)
    put(FilesSink, "sweep", lambda self, territory, root, fence: None)


@bite("a sweep removes no staging of a higher fence")
def sweep_of_higher_fences() -> None:
    sweep = FilesSink.sweep
    put(FilesSink, "sweep", lambda self, territory, root, fence: sweep(self, territory, root, fence + 1_000_000))


@bite("a place is stored before the write starts")
def place_stored_after_write() -> None:
    place, commit = BookmarkStore.place, BookmarkStore.commit

    def later(self: Any, *given: Any, **named: Any) -> None:
        self.__dict__.setdefault("late_places", []).append((given, named))

    def with_places(self: Any, *given: Any, **named: Any) -> Any:
        for place_given, place_named in self.__dict__.pop("late_places", []):
            place(self, *place_given, **place_named)
        return commit(self, *given, **named)

    put(BookmarkStore, "place", later)
    put(BookmarkStore, "commit", with_places)


@bite("a pause run writes under tokens, places and staging roots of its own")
def pause_under_normal_token() -> None:
    def placed(self: Any, output: str, place: Any) -> Any:
        head = self._store.snapshot(self._job).head
        key = RunKey(1, 1) if head is None else RunKey(head.run_number + 1, head.fence + 1)
        entry, _ = SINKS.stage(Territory(self._store.namespace, self._job), key, output, place)
        self._outputs.place(output, entry)
        return entry.place

    put(DetachedRun, "place", placed)


# ---- sinks that commit by themselves


@bite("a run that has landed in one table of two waits for a person", theme=TWO_SINKS)
def half_landed_taken_for_whole() -> None:
    put(recover, "settled", lambda store, grant, run, landed: run)


@bite("what has not landed of a run that a person lets count is stored as left out", theme=TWO_SINKS)
def missing_output_not_stored() -> None:
    put(partial, "_missing", lambda entry: entry)


@bite("the places of all tables that commit by themselves are stored before the first is written", theme=TWO_SINKS)
def one_place_stored_with_its_write() -> None:
    place = BookmarkStore.place

    def first_alone(self: Any, grant: Any, outputs: Mapping[str, Any], *given: Any, **named: Any) -> None:
        place(self, grant, {name: entry for name, entry in outputs.items() if name != "sink2"}, *given, **named)

    put(BookmarkStore, "place", first_alone)


@bite("a token is burned in the sink before its plan is given up", theme="sinks")
def token_not_burned() -> None:
    def landed(store: Any, grant: Any, run: Any, sinks: Any) -> Mapping[str, bool]:
        found = {name: sinks.find_committing(output.sink) for name, output in run.outputs.items()}
        outputs = {name: publish.stored_output(store, grant.job, run, name) for name, sink in found.items() if sink}
        return {name: found[name].landed(output) for name, output in outputs.items()}

    put(recover, "_landed", landed)


@bite("rows that have landed are taken over and not read again", theme="sinks")
def landed_rows_not_taken_over() -> None:
    landed = take(recover, "_landed")

    def never(store: Any, grant: Any, run: Any, sinks: Any) -> Mapping[str, bool]:
        return dict.fromkeys(landed(store, grant, run, sinks), False)

    put(recover, "_landed", never)


@bite("a landed plan is carried into a new epoch when the position is the same", theme="sinks")
def landed_rows_of_another_epoch_given_up() -> None:
    is_same = take(recover, "_is_same_position")
    put(recover, "_is_same_position", lambda grant, run: run.epoch == grant.base.epoch and is_same(grant, run))


# ---- publishing


def _moves(store: Any, output: Any) -> Sequence[tuple[str, str]]:
    return [] if output.publish is None else decode_moves(store.blobs.get(output.publish))


def _publish_with(publisher: Any) -> None:
    for module in (leased, recover, finish, publish):
        put(module, "publish_run", publisher)


@bite("overwrite deletes a list that is fixed at commit")
def delete_list_of_the_publish() -> None:
    publish_run = take(publish, "publish_run")

    def listing_late(store: Any, grant: Any, run: Any, environment: Any, sinks: Any = SINKS) -> int:
        count = publish_run(store, grant, run, environment, sinks)
        for output in run.outputs.values():
            if output.delete is None or output.publish is None or run.revision:
                continue
            own = {target for _, target in decode_moves(store.blobs.get(output.publish))}
            files = open_to_change(output.target)
            for path in files.list(output.target, recursive=True).files.paths:
                if path not in own:
                    files.delete(path)
        return int(count)

    _publish_with(listing_late)


@bite("a publisher works from the list that it began with, and never reads it anew half-way", theme="replays")
def publisher_reads_its_list_anew() -> None:
    def rereading(store: Any, grant: Any, run: Any, environment: Any, sinks: Any = SINKS) -> int:
        for name, output in run.outputs.items():
            files = open_to_change(output.target)
            for at, move in enumerate(_moves(store, output)):
                move_all(FileChanges([move], (), (), files), f"run {run.key}", publish.steps_of(environment))
                now = _moves(store, store.run(grant.job, run.key).outputs[name])
                files.delete(now[at][0])  # the source of the move is cleared away, by the list that is there now
            for path in [] if output.delete is None else decode_paths(store.blobs.get(output.delete)):
                files.delete(path)
        return 0

    _publish_with(rereading)


@bite("a move is one request that fails when its source is gone")
def move_by_copy_and_delete() -> None:
    def move(self: FaultyFiles, source: str, target: str) -> bool:
        file = self._files.files.get(source)
        if file is None:
            return False
        self.put(target, file)
        self.delete(source)
        return True

    put(FaultyFiles, "move", move)


@bite("a committed run is published in whatever epoch")
def recovery_filtered_by_epoch() -> None:
    finish_publish = take(recover, "finish_publish")

    def same_epoch(store: Any, grant: Any, environment: Any, sinks: Any = SINKS) -> Any:
        run = store.run(grant.job, grant.base.publishing)
        is_other = run is not None and run.epoch != grant.base.epoch
        return grant if is_other else finish_publish(store, grant, environment, sinks)

    put(recover, "finish_publish", same_epoch)


@bite("planned files are looked at again before the commit")
def no_second_look() -> None:
    put(active_run, "recheck_plan", lambda job, ctx, source, plan, on_missing: plan)


# ---- replays


@bite("a replay recovers first, like any run", theme="replays")
def replay_without_recovery() -> None:
    whole, begin = take(leased, "recover"), take(ReplayRun.begin_replay, "__func__")

    def unrecovered(cls: Any, *given: Any, **named: Any) -> Any:
        put(leased, "recover", lambda store, grant, environment, sinks=None: (grant, None))
        try:
            return begin(cls, *given, **named)
        finally:
            put(leased, "recover", whole)

    put(ReplayRun, "begin_replay", classmethod(unrecovered))


@bite("published names carry the fence: a revision never reuses a name")
def revision_reuses_names() -> None:
    put(ReplayRun, "file_token", property(lambda self: f"run-{self._run.key}"))


@bite("a replay deletes its own former files, and nothing but these")
def replay_leaves_former_files() -> None:
    entry = ReplayRun._entry

    def kept(self: Any, name: str) -> Any:
        return replace(entry(self, name), delete=None)

    put(ReplayRun, "_entry", kept)


@bite("a replay refuses a planned file that changed")
def replay_of_changed_files() -> None:
    put(ReplayRun, "_check_unchanged", lambda self, ctx, source, plan: None)


# ---- cleaning


@bite("a clean begins with the epoch, and nothing is removed before", theme="cleans")
def cleaned_before_the_epoch() -> None:
    begin_timeline = BookmarkStore.begin_timeline

    def hasty(self: Any, job: str, seen: Any, switch: Any, **how: Any) -> Any:
        if switch.cleaning is not None:
            body = switch.bodies[0] if switch.bodies else switch.cleaning.inline
            for path in CleanList.decode(body).files:
                open_to_change(path).delete(path)
        return begin_timeline(self, job, seen, switch, **how)

    put(BookmarkStore, "begin_timeline", hasty)


@bite("clean removes every revision: its staging, its files, its delete list", theme="cleans")
def clean_of_newest_revision() -> None:
    clean_list = take(clean, "clean_list")

    def newest(store: Any, job: str, undone: Sequence[Any], later: Any, **how: Any) -> Any:
        return clean_list(store, job, [replace(r, fences=r.fences[-1:], revision=0) for r in undone], later, **how)

    put(clean, "clean_list", newest)
    put(turn, "clean_list", newest)


@bite("a clean is noted on HEAD and finished by whoever begins next", theme="cleans")
def clean_not_finished() -> None:
    put(recover, "finish_clean", lambda store, grant, sinks=None: store.note_clean(grant))


# ---- consumers


@bite("a consumer selects runs by their state, and not by their number", theme="chain")
def upstream_selected_by_number() -> None:
    def select(job: UpstreamJob, after: int, head: Any, until: int | None) -> SelectedRuns:
        runs = [r for r in job.store.runs(job.name, after=after, until=head.published) if r.state.is_committed]
        return SelectedRuns(runs, runs, [])

    put(upstream, "select_runs", select)


@bite("a consumer stops before a run whose publish is due", theme="chain")
def edge_passes_a_due_run() -> None:
    def select(job: UpstreamJob, after: int, head: Any, until: int | None) -> SelectedRuns:
        seen = [r for r in job.store.runs(job.name, after=after, until=head.run_number) if r.state.is_committed]
        living = living_among(job, seen, head)
        published = [r for r in seen if r.state is RunState.PUBLISHED]
        return SelectedRuns([r for r in published if living.has(r)], published, [])

    put(upstream, "select_runs", select)


@bite("an edge keeps epoch and change count as seen at plan", theme="chain")
def edge_as_seen_at_commit() -> None:
    advance = UpstreamSource.advance

    def late(self: Any, plan: Any) -> Any:
        head = self._job.head()
        return advance(self, replace(plan, window=replace(plan.edge, epoch=head.epoch, changes=head.changes)))

    put(UpstreamSource, "advance", late)


@bite("a consumer is told of a replay at or below its edge", theme="chain")
def consumer_not_told_of_replay() -> None:
    put(rewind, "replayed_below", lambda job, before: None)


@bite("a consumer is told when a run that it has read is undone", theme="chain")
def consumer_not_told_of_rewind() -> None:
    put(upstream, "check_rewound", lambda job, before, head, on_rewind: None)

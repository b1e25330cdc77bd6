"""Whatever jobs have read of each other, and wherever a backfill stops: after it each row is in each target once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from airflow_bookmarks.core.errors import (
    BackfillStoppedError,
    BookmarkError,
    MisuseError,
    RewindAlongRefusedError,
    SourceMissingError,
    StoreUnavailableError,
    UpstreamRewoundError,
)
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.lifecycle.backfill import carry_out as making
from airflow_bookmarks.lifecycle.backfill.carry_out import carry_out
from airflow_bookmarks.lifecycle.backfill.plan import BackfillPlan, plan_backfill
from airflow_bookmarks.lifecycle.changes.change import Change, apply, rewind
from airflow_bookmarks.sinks.staging import Mode, StagingRequest, collect_staged
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.upstream.rewind import OnRewind
from airflow_bookmarks.sources.upstream.source import UpstreamSource
from tests.lifecycle.shop import FILES, Shop

TERMS: dict[str, Any] = {"reason": "a bad delivery", "who": "ada"}
# What a run may end with that reads of jobs which others take back meanwhile.
_REFUSED = (MisuseError, SourceMissingError, UpstreamRewoundError, RewindAlongRefusedError)


@dataclass
class Net:
    """Jobs that read files and each other at random; each appends what it reads."""

    shop: Shop
    random: Random
    upstreams: dict[str, dict[str, str]] = field(default_factory=dict)  # by job and context
    reads_files: set[str] = field(default_factory=set)
    files: int = 0
    refusals: int = 0

    @classmethod
    def of(cls, shop: Shop, random: Random) -> Net:
        net = cls(shop, random)
        for number in range(random.randint(2, 6)):
            job, before = f"j{number}", list(net.upstreams)
            chosen = random.sample(before, min(len(before), random.choice([1, 1, 1, 2, 3])))
            net.upstreams[job] = {f"c_{each}": each for each in chosen}
            if chosen and random.random() < 0.2:
                net.upstreams[job]["again"] = chosen[0]
            if not chosen or random.random() < 0.2:
                net.reads_files.add(job)
        return net

    def deliver(self) -> None:
        self.shop.put(f"{self.files}.txt", f"row {self.files}")
        self.files += 1

    def run(self, job: str, contexts: dict[str, str] | None = None, on_rewind: OnRewind = "fail") -> None:
        """Make a run of a job, which reads all its sources, or files and some upstreams by some contexts."""
        store, run = self.shop.store, self.shop.begin(job)
        wanted = self.upstreams[job] if contexts is None else contexts
        try:
            plans: dict[str, FilePlan] = {}
            for ctx, upstream in wanted.items():
                plans[ctx] = run.plan(ctx, UpstreamSource(store, job, upstream, on_rewind=on_rewind))
            if job in self.reads_files:
                plans["raw"] = run.plan("raw", FileSource(FILES, [str(self.shop.raw)], FileOptions()))
        except BookmarkError as error:
            run.abort(str(error))
            raise
        target = self.shop.root / job
        place = StagingRequest("files", str(target), stats={"format": "text", "mode": Mode.APPEND.value})
        folder = Path(run.place("out", place))
        rows = 0
        for ctx, plan in plans.items():
            for path in plan.files.paths:
                part = folder / f"context={ctx}" / f"{Path(path).stem}-{rows}.txt"
                part.parent.mkdir(parents=True, exist_ok=True)
                part.write_text(Path(path).read_text())
                rows += 1
        staged = collect_staged(
            FILES, str(folder), str(target), run.file_token, Mode.APPEND, rows=rows, schema='{"fields":[]}'
        )
        run.staged("out", staged)
        run.commit()

    def any_run(self, on_rewind: OnRewind = "fail") -> None:
        """Make a run of any job, as far as its upstreams have begun and have not gone back."""
        job = self.random.choice(list(self.upstreams))
        contexts = self.upstreams[job]
        if len(contexts) > 1 and self.random.random() < 0.4:
            chosen = self.random.sample(sorted(contexts), self.random.randint(1, len(contexts)))
            contexts = {ctx: contexts[ctx] for ctx in chosen}
        try:
            self.run(job, contexts, on_rewind)
        except _REFUSED:
            self.refusals += 1

    def begun(self) -> list[str]:
        return [job for job, head in self.shop.store.heads(list(self.upstreams)).items() if head.run_number]

    def point_of(self, job: str) -> int | None:
        """Return a run that a job may go back to; None: before its first."""
        store = self.shop.store
        living = store.ancestry(job, store.head(job).epoch)
        return self.random.choice([*(run.key.number for run in store.runs(job) if living.has(run)), None])

    def expected(self, job: str) -> Counter[str]:
        """Return the rows that a job has in its target once it has read all that there is."""
        rows: Counter[str] = Counter()
        for upstream in self.upstreams[job].values():
            rows += self.expected(upstream)
        return rows + Counter(f"row {n}" for n in range(self.files)) if job in self.reads_files else rows


def play(net: Net) -> str | None:
    """Deliver files and make runs; one job is rewound now and then, and returned."""
    net.deliver()
    rewound: str | None = None
    for _ in range(net.random.randint(8, 40)):
        if net.random.random() < 0.3:
            net.deliver()
        net.any_run()
        begun = net.begun()
        if begun and net.random.random() < 0.06:
            job = rewound or net.random.choice(begun)
            point = net.point_of(job)
            if point is not None:
                rewind(net.shop.store, job, point, clean=True, **TERMS)
                rewound = job
    return rewound


def stopped(net: Net, plan: BackfillPlan, after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a backfill stop after some jobs, and others run before it goes on."""
    made: list[str] = []

    def failing(store: Any, job: str, change: Change, **terms: Any) -> Any:
        if len(made) == after:
            raise StoreUnavailableError("the table does not answer")
        made.append(job)
        return apply(store, job, change, **terms)

    with monkeypatch.context() as broken:
        broken.setattr(making, "apply", failing)
        try:
            carry_out(net.shop.store, plan, **TERMS)
        except BackfillStoppedError as error:
            assert error.done == tuple(made)  # noqa: PT017 - it need not stop
    for _ in range(net.random.randint(0, 4)):
        net.any_run(net.random.choice(["rewind", "fail"]))


@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(8, 80))]
)
def test_each_row_is_there_once_after_a_backfill_and_one_run_of_each_job(
    shop: Shop, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = Net.of(shop, Random(seed))
    # Who was left behind by another rewind waits for a decision about that, and for none about this one.
    rewound = play(net)
    while not net.begun():
        net.any_run()
    root = rewound or net.random.choice(net.begun())
    point = net.point_of(root)
    change = Change("reset", clean=True) if point is None else Change("rewind", to_run=str(point), clean=True)
    plan = plan_backfill(shop.store, {root: change})
    if net.random.random() < 0.7:
        stopped(net, plan, net.random.randint(0, len(plan.steps)), monkeypatch)
        plan = plan_backfill(shop.store, {root: change})
    assert plan.refused == {}

    carry_out(shop.store, plan, **TERMS)
    for job in net.upstreams:
        net.run(job)

    assert {job: shop.target_lines(job) for job in net.upstreams} == {job: net.expected(job) for job in net.upstreams}

"""The model kept apart: what sources held, what listings saw, what was read and staged, and how the table moved.

It is told of each transaction as it takes effect, of each listing, and of each move of a file. It knows nothing of how
the package decides; it only says what no decision may lead to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.files.filesystem import Listed
from airflow_bookmarks.sources.registry import kind_of
from airflow_bookmarks.store.backends.limits import check_item
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.codec.item import run_key
from airflow_bookmarks.store.table import Attributes, Key
from tests.chaos.sim.files import SimFile, SimFiles
from tests.chaos.sim.reading import Reading, Seen, faults
from tests.chaos.sim.record import Intent, JobWitness, Look, State
from tests.chaos.sim.scheduler import Process, Scheduler
from tests.chaos.sim.sink import KIND, RowSink
from tests.chaos.sim.table import SimTable, Written

NAMESPACE = "sim"
OUTPUT = "out"  # what consumers read
HEAD_BYTES = 4096
_COUNTERS = ("version", "epoch", "fence", "changes", "run_number", "published")
_STEPS = {
    None: {"PLANNED", "COMMITTED"},
    "PLANNED": {"PLANNED", "FAILED", "COMMITTED", "ABANDONED"},
    "FAILED": {"FAILED", "ABANDONED"},
    "COMMITTED": {"COMMITTED", "PUBLISHED"},
    "PUBLISHED": {"PUBLISHED", "COMMITTED"},
    "ABANDONED": {"ABANDONED"},
}


class Witness:
    """Looks at everything, and keeps what must not be."""

    def __init__(self, table: SimTable, files: SimFiles, scheduler: Scheduler, sinks: Mapping[str, RowSink]) -> None:
        self._table, self._files, self._scheduler, self._sinks = table, files, scheduler, sinks
        self.jobs: dict[str, JobWitness] = {}
        self.violations: list[str] = []
        self.side_rows: dict[str, Counter[str]] = {}
        self.judged: Counter[str] = Counter()  # what of its habits has shown in this world
        self._written: Written = {}
        self._store = BookmarkStore(table, NAMESPACE)  # to read what is stored; it is no actor's
        table.on_write = self.on_write
        files.on_move = self.on_move

    def say(self, text: str) -> None:
        """Keep a violation."""
        self._scheduler.note(f"VIOLATION {text}")
        self.violations.append(text)

    # ---- what drivers and files tell

    def on_listed(self, root: str, listed: Listed) -> None:
        """Keep what a listing saw, for the process that listed."""
        process = self._scheduler.process
        if process is not None:
            seen = {file.path: (file.version, file.modified_ms) for file in listed.files}
            process.notes.setdefault("listed", {})[root] = seen

    def on_got(self, keys: Sequence[Key]) -> None:
        """Keep how the jobs stand whose heads a process reads."""
        process = self._scheduler.process
        for key in keys if process is not None else ():
            job = key.pk.removeprefix(f"{NAMESPACE}#JOB#")
            if key.sk == "HEAD" and job in self.jobs and process is not None:
                look = self.jobs[job].look()
                process.notes.setdefault("looks", {})[job] = look
                # Those of one job without a look at another between them: a change may go by any of these.
                last, row = process.notes.get("row of looks", ("", []))
                process.notes["row of looks"] = (job, [*row, look] if job == last else [look])

    def planned(self, job: str, number: int, fence: int, ctx: str, plan: FilePlan, process: Process) -> None:
        """Keep what a run is about to read; its plan must be stored by now."""
        item = self._run_item(job, number, fence)
        if item is None or f"plan:{ctx}" not in item:
            self.say(f"plan of {ctx!r} of {job} {number}.{fence} is not stored before the read")
        self.jobs[job].readings.setdefault(fence, {})[ctx] = Reading.of(
            plan, self.jobs[job].habit, self.seen_by(process, ctx, plan)
        )

    @staticmethod
    def seen_by(process: Process, ctx: str, plan: FilePlan) -> Seen:
        """Return the listing from which a process has planned: batches after the first go on with the first one's."""
        roots = process.notes.pop("listed", None)
        if roots is not None:
            seen = {path: entry for root in plan.roots for path, entry in roots.get(root, {}).items()}
            process.notes.setdefault("planned from", {})[ctx] = seen
        found: Seen = process.notes.get("planned from", {}).get(ctx, {})
        return found

    def reads(self, job: str, fence: int, ctx: str, rows: Iterable[str]) -> None:
        """Keep which rows a run got."""
        self.jobs[job].readings[fence][ctx].rows.update(rows)

    def writes(self, job: str, number: int, fence: int, output: str, rows: Counter[str], place: str | None) -> None:
        """Keep which rows a run stages, or hands to a sink; the place must be stored by now."""
        item = self._run_item(job, number, fence)
        stored: Any = None if item is None else item.get(f"output:{output}")
        if place is not None and (stored is None or stored["place"] != place):
            self.say(f"place of {output!r} of {job} {number}.{fence} is not stored before the write")
        self.jobs[job].staged.setdefault(fence, {})[output] = rows

    def _run_item(self, job: str, number: int, fence: int) -> Attributes | None:
        return self._table.items(f"{NAMESPACE}#JOB#{job}").get(f"RUN#{number:010d}#{fence:010d}")

    def on_move(self, source: str, target: str, replaced: SimFile | None) -> None:
        """Look at a move: only what is committed becomes visible, under a name of its own."""
        if replaced is not None:
            self.say(f"{target} is published over a file of that name")
        _, _, rest = source.partition(f"/_bookmarks/{NAMESPACE}/")
        job, _, below = rest.partition("/")
        if job.endswith(".side"):
            self.side_rows.setdefault(target.split("/p=")[0], Counter()).update(self._files.files[target].rows)
            return
        if job not in self.jobs:
            return
        number, fence = (int(part) for part in below.split("/")[0].split("."))
        prefix = f"RUN#{number:010d}#"
        for sk, item in self._table.items(f"{NAMESPACE}#JOB#{job}").items():
            if sk.startswith(prefix) and item["state"] in ("COMMITTED", "PUBLISHED") and _has(item, source, fence):
                return
        self.say(f"{target} becomes visible, and run {number}.{fence} of {job} is not committed")

    # ---- the table

    def on_write(self, written: Written) -> None:
        """Look at one transaction."""
        self._written = written
        jobs = dict.fromkeys(key.pk.split("#", 2)[2] for key in written if key.pk.startswith(f"{NAMESPACE}#JOB#"))
        for job in jobs:
            if job in self.jobs:
                self._look(job, {key: change for key, change in written.items() if key.pk.endswith(f"#JOB#{job}")})

    def _look(self, job: str, written: Written) -> None:
        witness = self.jobs[job]
        head_key = Key(f"{NAMESPACE}#JOB#{job}", "HEAD")
        now = self._table.items(head_key.pk).get("HEAD")
        before, after = written.get(head_key, (now, now))
        for key, (was, will) in written.items():
            if key.sk.startswith("RUN#") and was != will:
                is_turn = before is not None and after is not None and before["epoch"] != after["epoch"]
                self._look_at_run(job, witness, run_key(key.sk), was, will, before, is_turn)
        if head_key in written:
            self._look_at_head(job, witness, before, after, written)
        self._note_empty_replay(witness, written)

    def _note_empty_replay(self, witness: JobWitness, written: Written) -> None:
        """Keep which execution has replayed a run that was empty: that is done, and there is nothing to commit."""
        if any(key.sk.startswith("RUN#") for key in written):
            return
        for key, (was, will) in written.items():
            is_over = will is not None and will.get("finished") and "replaying" not in will
            if key.sk.startswith("EXEC#") and "replaying" in (was or {}) and is_over:
                witness.own_commits.add(key.sk.removeprefix("EXEC#"))

    def _look_at_head(
        self, job: str, witness: JobWitness, before: Attributes | None, after: Attributes | None, written: Written
    ) -> None:
        if after is None:
            self.say(f"HEAD of {job} is gone")
            return
        size = check_item(Key(f"{NAMESPACE}#JOB#{job}", "HEAD"), after)
        if size >= HEAD_BYTES:
            self.say(f"HEAD of {job} has {size} bytes")
        was: Mapping[str, Any] = before or {"epoch": 1} | dict.fromkeys(("version", "fence", "run_number"), 0)
        will: Mapping[str, Any] = after
        for name in _COUNTERS:
            if will[name] < was.get(name, 0):
                self.say(f"{name} of {job} goes back from {was[name]} to {will[name]}")
        if will["published"] > will["run_number"]:
            self.say(f"{job} has published more than it committed")
        self._look_at_lease(job, witness, was, will)
        self._look_at_kill(job, was, will, written)
        if will["epoch"] != was["epoch"]:
            self._switch(job, witness, was, will, written)
        elif will["run_number"] != was["run_number"]:
            self._commit(job, witness, was, will)
        elif will["version"] != was["version"]:
            self.say(f"version of {job} grows without a commit or turn")

    def _look_at_lease(self, job: str, witness: JobWitness, was: Mapping[str, Any], will: Mapping[str, Any]) -> None:
        fence, nonce = will["fence"], will.get("lease_nonce")
        process = self._name()
        if fence != was["fence"]:
            witness.owners[fence] = process if nonce is not None else "nobody"
        if nonce is None or nonce == was.get("lease_nonce"):
            return
        if fence == was["fence"] or fence in witness.nonces:
            self.say(f"{job}: two holders under fence {fence}")
        witness.nonces[fence] = nonce
        sk = f"EXEC#{will['lease_run_id']}"
        execution: Mapping[str, Any] = self._table.items(f"{NAMESPACE}#JOB#{job}").get(sk, {})
        is_worker = self._scheduler.process is not None and self._scheduler.process.notes.get("finishes")
        if execution.get("killed_attempt", 0) >= will["lease_attempt"] and not is_worker:
            self.say(f"{job}: the killed attempt {will['lease_attempt']} of {will['lease_run_id']} holds the lease")

    def _look_at_kill(self, job: str, was: Mapping[str, Any], will: Mapping[str, Any], written: Written) -> None:
        for key, (before, after) in written.items():
            killed: Any = (after or {}).get("killed_attempt", 0)
            if not key.sk.startswith("EXEC#") or killed <= (before or {}).get("killed_attempt", 0):
                continue
            is_named = key.sk == f"EXEC#{was.get('lease_run_id')}" and killed >= was.get("lease_attempt", 0)
            if will["fence"] != was["fence"] and "lease_run_id" in was and not is_named:
                self.say(f"{job}: the kill of {key.sk} fences {was.get('lease_run_id')}, which it does not name")

    def _name(self) -> str:
        process = self._scheduler.process
        return "the world" if process is None else process.name

    def _commit(self, job: str, witness: JobWitness, was: Mapping[str, Any], will: Mapping[str, Any]) -> None:
        key = RunKey.parse(will["publishing"])
        if will["run_number"] != was["run_number"] + 1 or will["version"] != was["version"] + 1:
            self.say(f"commit of {job} {key}: numbers jump from {dict(was)} to {dict(will)}")
        if key.number in witness.committed:
            self.say(f"{job}: run {key.number} commits twice, {witness.committed[key.number]} and {key}")
        item: Mapping[str, Any] = self._run_item(job, key.number, key.fence) or {}
        fences = [key.fence, *item.get("fences", [])]
        fence = next((f for f in fences if f in witness.readings), key.fence)
        base = witness.states[was["version"]]
        known, newest = {ctx: dict(entries) for ctx, entries in base.known.items()}, dict(base.newest)
        readings = witness.readings.get(fence, {})
        self._settle(job, key, readings)
        for ctx, reading in readings.items():
            for text in faults(reading, known.get(ctx, {}), newest.get(ctx), self._files):
                self.say(f"{job} {key} {text}, context {ctx!r}")
            self.judged.update(reading.skipped)
            self._leave_to_next_loop(ctx, reading)
            known[ctx] = {**known.get(ctx, {}), **reading.read}
            if reading.seen is not None and reading.read:
                times = [self._files.written[name, version].modified_ms for name, version in reading.read.items()]
                newest[ctx] = max([*times, newest.get(ctx, 0)])
        staged = witness.staged.get(fence, {})
        witness.sound[key.number] = self._check_rows(job, key, readings, staged)
        witness.version = will["version"]
        witness.states[witness.version] = State(known, (*base.living, key.number), newest)
        witness.version_of[key.number] = witness.version
        witness.committed[key.number] = key
        witness.final[key.number] = dict(readings)
        witness.rows[key.number] = _published(item, readings, staged)
        witness.rows_of[str(key.number), "0"] = witness.rows[key.number]
        self._note_commit(witness, key)

    def _leave_to_next_loop(self, ctx: str, reading: Reading) -> None:
        """What changed while a batch read it is counted there, and read by a run that lists anew."""
        process = self._scheduler.process
        listings = {} if process is None else process.notes.get("planned from", {})
        if ctx in listings:
            listings[ctx] = {path: entry for path, entry in listings[ctx].items() if path not in reading.dropped}

    def _settle(self, job: str, key: RunKey, readings: Mapping[str, Reading]) -> None:
        """Let readings know what the plans hold that the commit goes by."""
        run = self._store.run(job, key)
        for ctx, reading in readings.items():
            if run is not None and ctx in run.plans:
                entry = run.plans[ctx]
                reading.settle(kind_of(entry.kind).decode(self._store.blobs.get(entry.body)))

    def _note_commit(self, witness: JobWitness, key: RunKey) -> None:
        process = self._scheduler.process
        if process is not None:
            witness.commits_by.setdefault(process.name, []).append(key)
            if process.notes.get("phase") == "commit":
                witness.own_commits.add(process.notes["run_id"])

    def _check_rows(
        self, job: str, key: RunKey, readings: Mapping[str, Reading], staged: Mapping[str, Counter[str]]
    ) -> Counter[str]:
        """Hold the rows that were read against those of the plan; return these.

        Of a file that changed while it was read, and is left to the next run, there may be rows of any version.
        """
        got, sound = Counter[str](), Counter[str]()
        for ctx, reading in readings.items():
            got.update(reading.rows)
            want = self._rows_of(job, ctx, reading)
            if want is None:
                sound.update(reading.rows)
                continue
            sound.update(want)
            torn = {name.rpartition("/")[2] for name in reading.dropped}
            extra = [row for row in reading.rows - want if row.partition("@")[0] not in torn]
            if want - reading.rows or extra:
                self.say(f"{job} {key} commits {_told(reading.rows)} where its plan holds {_told(want)}")
        for output, rows in staged.items():
            if rows != got:
                self.say(f"{job} {key} stages {_told(rows)} in {output!r} of what it read: {_told(got)}")
        return sound

    def _rows_of(self, job: str, ctx: str, reading: Reading) -> Counter[str] | None:
        """Return the rows that a reading has to have; None where a later run may have replaced some of them."""
        want: Counter[str] = Counter()
        upstream = self.jobs[job].upstreams.get(ctx)
        if upstream is None:
            for name, version in reading.read.items():
                want.update(self._files.written[name, version].rows)
            return want
        if not self.jobs[upstream].appends:
            return None
        for number, revision in reading.read.items():
            want.update(self.jobs[upstream].rows_of[number, revision].get(OUTPUT, Counter()))
        return want

    def _switch(
        self, job: str, witness: JobWitness, was: Mapping[str, Any], will: Mapping[str, Any], written: Written
    ) -> None:
        line = next((item for key, (_, item) in written.items() if key.sk.startswith("LINE#")), None)
        event = next((item for key, (_, item) in written.items() if key.sk.startswith("EVENT#")), None)
        if line is None or event is None or will["epoch"] != was["epoch"] + 1 or will["fence"] <= was["fence"]:
            self.say(f"{job} turns to epoch {will['epoch']} without line, event or fence")
            return
        intent = self._intent()
        base = witness.states[was["version"]]
        state = self._after(job, witness, base, was, intent, line)
        witness.before_epoch[will["epoch"]] = was["version"]
        witness.kinds[will["epoch"]] = intent.kind
        undone = set(base.living) - set(state.living)
        if intent.clean and (undone or "intent" in self._notes()):  # who goes along cleans where it undoes something
            # With what was undone before, without a clean; of what was collected nobody knows what it published.
            witness.cleaned |= undone | (set(witness.committed) - set(state.living) - witness.collected)
        due = was.get("publishing")
        if due is not None and will.get("publishing") is None:
            witness.dropped.add(RunKey.parse(due).number)
        witness.version = will["version"]
        witness.states[witness.version] = state

    def _intent(self) -> Intent:
        notes = self._notes()
        found = notes.get("intent", notes.get("along"))  # of a person, or of a consumer that goes back along
        return found if isinstance(found, Intent) else Intent("rewind")

    def _notes(self) -> Mapping[str, Any]:
        process = self._scheduler.process
        return {} if process is None else process.notes

    def _after(
        self,
        job: str,
        witness: JobWitness,
        base: State,
        was: Mapping[str, Any],
        intent: Intent,
        line: Mapping[str, Any],
    ) -> State:
        if intent.kind == "undo":
            return witness.states[witness.before_epoch[was["epoch"]]]
        if intent.kind == "set":
            known = {**base.known, intent.ctx: self._set(job, witness, base, intent)}
            return State(known, base.living, self._newest_after(base, intent, known[intent.ctx]))
        if intent.contexts is None:
            kept = line["kept"]
            return State() if kept == 0 else witness.states[witness.version_of[kept]]
        kept_number = int(intent.value or 0)
        source = State() if kept_number == 0 else witness.states[witness.version_of[kept_number]]
        changed = {ctx: source.known.get(ctx, {}) for ctx in intent.contexts}
        rest = {ctx: at for ctx, at in base.newest.items() if ctx not in intent.contexts}
        newest = rest | {ctx: at for ctx, at in source.newest.items() if ctx in intent.contexts}
        return State({**base.known, **changed}, base.living, newest)

    def _newest_after(self, base: State, intent: Intent, known: Mapping[str, str]) -> Mapping[str, int]:
        """Return the latest times after a set: what counts as read is all there is then, or comes to what was read."""
        entries = [self._files.written.get(entry) for entry in known.items()]
        times = [file.modified_ms for file in entries if file is not None]
        times += [base.newest[intent.ctx]] if intent.value == "now" and intent.ctx in base.newest else []
        rest = {ctx: at for ctx, at in base.newest.items() if ctx != intent.ctx}
        return rest | ({intent.ctx: max(times)} if times else {})

    def _set(self, job: str, witness: JobWitness, base: State, intent: Intent) -> Mapping[str, str]:
        upstream = witness.upstreams.get(intent.ctx)
        if upstream is not None:
            return self._set_upstream(job, upstream, intent)
        process = self._scheduler.process
        listed = {} if process is None else process.notes.get("listed", {})
        seen = {path: entry for rows in listed.values() for path, entry in rows.items()}
        if intent.value == "now":
            return {**base.known.get(intent.ctx, {}), **{path: version for path, (version, _) in seen.items()}}
        limit_ms = int(intent.value)
        return {path: version for path, (version, at_ms) in seen.items() if at_ms <= limit_ms}

    def _set_upstream(self, job: str, upstream: str, intent: Intent) -> Mapping[str, str]:
        """What is published "now" is what was when the change looked, and not when its transaction took effect."""
        process = self._scheduler.process
        notes: Mapping[str, Any] = process.notes if process is not None else {}
        look: Look = notes["looks"][upstream]
        last, row = notes["row of looks"]
        first = row[0] if last == upstream else look
        edge: Any = self._written.get(Key(f"{NAMESPACE}#JOB#{upstream}", f"DOWN#{job}"), (None, None))[1]
        top: int = edge["run_number"]
        still = first.published & self.jobs[upstream].look().published
        wanted = (
            {max(still, default=0), max(look.published, default=0)} if intent.value == "now" else {int(intent.value)}
        )
        if not min(wanted) <= top <= max(wanted):
            self.say(f"{job} is set to {intent.value} of {upstream}, which was {sorted(wanted)}, and stands at {top}")
        return {number: revision for number, revision in look.revisions.items() if int(number) <= top}

    def _look_at_run(
        self,
        job: str,
        witness: JobWitness,
        key: RunKey,
        was: Mapping[str, Any] | None,
        will: Mapping[str, Any] | None,
        head: Mapping[str, Any] | None,
        is_turn: bool,
    ) -> None:
        process = self._scheduler.process
        if will is None:
            if process is None or not process.notes.get("collects"):
                self.say(f"run item {key} of {job} is removed")
            witness.collected.add(key.number)
            return
        before, after = None if was is None else was["state"], will["state"]
        if after not in _STEPS[before]:
            self.say(f"run {key} of {job} goes from {before} to {after}")
        if was is not None and will["revision"] < was["revision"]:
            self.say(f"revision of run {key} of {job} goes back")
        if before == "PUBLISHED" and after == "COMMITTED" and was is not None:
            self._look_at_replay(job, witness, key, was, will)
        owner = None if head is None else witness.owners.get(head["fence"])
        if not is_turn and owner != self._name() and not _is_decision(was, will):
            self.say(f"{self._name()} writes run {key} of {job}, which {owner} holds")
        witness.run_states[key], witness.items[key] = after, will
        witness.fences[key] = tuple(will["fences"])
        if after == "ABANDONED" and before != after and head is not None:
            witness.abandoned_at[key] = (will["base_version"], head["version"])
        if after == "PUBLISHED" and before != after:
            witness.marked |= set(will["fences"])

    def _look_at_replay(
        self, job: str, witness: JobWitness, key: RunKey, was: Mapping[str, Any], will: Mapping[str, Any]
    ) -> None:
        if will["revision"] != was["revision"] + 1:
            self.say(f"run {key} of {job} is committed again without a new revision")
        witness.revisions[key.number] = will["revision"]
        witness.cleaned_before[key.number] = frozenset(witness.cleaned)
        fence = will["fences"][-1]
        rows, sound = witness.staged.get(fence, {}), witness.sound.get(key.number, Counter())
        if rows != witness.rows.get(key.number) and any(got != sound for got in rows.values()):
            self.say(f"the replay of run {key} of {job} has other rows than the run")
        witness.rows[key.number] = witness.rows_of[str(key.number), str(will["revision"])] = dict(rows)
        if key.number not in witness.state.living:
            self.say(f"run {key} of {job} is replayed though it was undone")
        self._note_commit(witness, RunKey(key.number, fence))


def _published(
    item: Mapping[str, Any], readings: Mapping[str, Reading], staged: Mapping[str, Counter[str]]
) -> dict[str, Counter[str]]:
    """Return the rows that a commit makes visible: of an empty run those of the outputs that it publishes all the same.

    A sink that commits by itself has no list of what is published: its rows are there.
    """
    if any(reading.files for reading in readings.values()):
        return dict(staged)
    entries = {output: item.get(f"output:{output}", {}) for output in staged}
    is_visible = {output: "publish" in entry or entry.get("sink") == KIND for output, entry in entries.items()}
    return {output: rows for output, rows in staged.items() if rows and is_visible[output]}


def _is_decision(was: Mapping[str, Any] | None, will: Mapping[str, Any]) -> bool:
    """Whether a run item changes in nothing but what a person has decided of it."""

    def undecided(item: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: {**value, "facts": {k: v for k, v in value["facts"].items() if k != "settled_as"}}
            if name.startswith("output:")
            else value
            for name, value in item.items()
        }

    return was is not None and was["state"] in ("PLANNED", "FAILED") and undecided(was) == undecided(will)


def _has(item: Mapping[str, Any], source: str, fence: int) -> bool:
    """Whether a run item, or a former revision of it, has staged a file."""
    places = [value["place"] for name, value in item.items() if name.startswith("output:")]
    return fence in item["fences"] or any(source.startswith(f"{place}/") for place in places)


def _told(rows: Counter[str]) -> str:
    return ", ".join(f"{row} x{count}" if count > 1 else row for row, count in sorted(rows.items())) or "nothing"

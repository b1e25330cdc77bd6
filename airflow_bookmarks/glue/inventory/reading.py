"""From the source of a script to what it needs: each rule looks at one kind of thing, and says so with a line."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from airflow_bookmarks.core.database.copy.load import options_of, role_of
from airflow_bookmarks.core.database.script import PublishScript
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.inventory.finding import ScriptFinding
from airflow_bookmarks.glue.inventory.in_place import rewritten_in_place
from airflow_bookmarks.glue.inventory.source import UNKNOWN, ScriptSource, dotted
from airflow_bookmarks.glue.inventory.spark_writes import spark_writes
from airflow_bookmarks.glue.inventory.surface import (
    AT_ONCE,
    CONNECTION_PREFIXES,
    CONNECTIONS,
    CONTEXT_MEMBERS,
    FORMATS,
    FRAME_METHODS,
    JSON_PATH,
    OPTION_NOTES,
    OUT_OF_REACH,
    PRESENT_PACKAGES,
    READ_ONLY,
    SQL_CONTEXT_MEMBERS,
    WITHOUT_FOLDER,
    WRITTEN_AT_ONCE,
    CallForm,
    Support,
    form_of,
    is_type,
    why_absent,
)
from airflow_bookmarks.glue.inventory.swallowed import swallowed_errors
from airflow_bookmarks.glue.inventory.targets import FixedTarget, fixed_targets

# Options of a write that a load into Redshift checks, by their names in small letters.
_OF_LOADS: Mapping[str, Callable[[str | None], object]] = {
    "preactions": lambda text: PublishScript.of("redshift", text, None),
    "postactions": lambda text: PublishScript.of("redshift", None, text),
    "extracopyoptions": options_of,
    "aws_iam_role": role_of,
}
_PATH = Path(__file__).parents[1] / "path"
_CONTEXT_NAMES = ("glueContext", "glue_context", "gluecontext")
_JVM = ("_jvm", "_jdf", "_jsc", "_glue_scala_context")
_SPARK_READS = ("spark.read", "spark_session.read", "sqlContext.read", "spark.table")
_SQL = ("spark.sql", "spark_session.sql", "sqlContext.sql")
_VIEWS = ("createOrReplaceTempView", "createTempView", "registerTempTable", "registerDataFrameAsTable")
# By the end of the name that a script calls: the parameters up to the mappings.
_MAPPINGS: Mapping[str, tuple[str, ...]] = {
    "ApplyMapping.apply": ("frame", "mappings"),
    "apply_mapping": ("mappings",),
    "applyMapping": ("mappings",),
}
_READ_BY_SQL = re.compile(r"\b(?:from|join)\s+(`[^`]+`|[\w.]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ScriptNeeds:
    """What one script needs: what it uses of Glue, its arguments, the contexts it reads with, the targets it names."""

    findings: tuple[ScriptFinding, ...] = ()
    arguments: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()
    targets: tuple[FixedTarget, ...] = ()

    @property
    def verdict(self) -> Support | None:
        """The worst of what is found; None of a script that uses nothing of Glue."""
        order = list(Support)
        return max((finding.support for finding in self.findings), key=order.index, default=None)

    def of(self, support: Support) -> list[ScriptFinding]:
        """Return the findings of one kind."""
        return [finding for finding in self.findings if finding.support is support]


def read_script(text: str, beside: Collection[str] = ()) -> ScriptNeeds:
    """Return what a script needs.

    Args:
        text: its source.
        beside: names of the modules that lie beside it, which it may import.
    """
    try:
        reading = _Reading(ScriptSource(text), frozenset(beside))
    except SyntaxError as error:
        note = f"it is no Python 3 ({error.msg}), so nothing more can be said of it"
        return ScriptNeeds((ScriptFinding(error.lineno or 1, Support.NO, "the script", note),))
    return reading.needs()


@dataclass(slots=True)
class _Reading:
    source: ScriptSource
    beside: frozenset[str]
    arguments: list[str] = field(default_factory=list)
    contexts: dict[str, int] = field(default_factory=dict)
    found: list[ScriptFinding] = field(default_factory=list)

    def needs(self) -> ScriptNeeds:
        for rule in (self._imports, self._calls, self._mappings, self._members, self._spark_reads, self._job):
            self.found += rule()
        self.found += [*spark_writes(self.source), *rewritten_in_place(self.source)]
        self.found += swallowed_errors(self.source, self._jobs)
        ordered = sorted(dict.fromkeys(self.found), key=lambda finding: finding.line)
        targets = tuple(fixed_targets(self.source))
        return ScriptNeeds(tuple(ordered), tuple(dict.fromkeys(self.arguments)), tuple(self.contexts), targets)

    # ---- what is imported

    def _imports(self) -> Iterator[ScriptFinding]:
        for each in self.source.imports():
            root = each.module.partition(".")[0]
            why = None if root in self.beside else why_absent(root)
            if why is not None:
                yield ScriptFinding(each.line, Support.NO, f"import {each.module}", why)
            elif each.module == "scripts.helpers.watermarks":
                yield ScriptFinding(each.line, Support.YES, f"import {each.module}")
            elif root == "awsglue":
                yield self._glue_import(each.line, each.module, each.names)
            elif not self._is_present(root):
                note = (
                    "not part of Python or of this package: ship it with the script, or have it in the driver's image"
                )
                yield ScriptFinding(each.line, Support.WORD, f"import {each.module}", note)

    def _glue_import(self, line: int, module: str, names: tuple[str, ...]) -> ScriptFinding:
        known = exported(module)
        if known is None:
            return ScriptFinding(
                line, Support.NO, f"import {module}", "this module of awsglue is not part of this layer"
            )
        missing = [name for name in names if name != "*" and name not in known and exported(f"{module}.{name}") is None]
        if missing:
            note = f"{', '.join(missing)} of it is not part of this layer"
            return ScriptFinding(line, Support.NO, f"import {module}", note)
        return ScriptFinding(line, Support.YES, f"import {module}")

    def _is_present(self, root: str) -> bool:
        return root in sys.stdlib_module_names or root in PRESENT_PACKAGES or root in self.beside

    # ---- what is called

    def _calls(self) -> Iterator[ScriptFinding]:
        for name, call in self.source.calls():
            last = name.rpartition(".")[2]
            form = form_of(name)
            if form is not None:
                yield from self._glue_call(name, call, form)
            elif last in OUT_OF_REACH and "." in name:
                yield ScriptFinding(call.lineno, Support.NO, last, OUT_OF_REACH[last])
            elif last == "setFormat" and call.args:
                for support, note in self._format({"format": call.args[0]}):
                    yield ScriptFinding(call.lineno, support, last, note)
            elif last == "getResolvedOptions":
                yield from self._resolved(call)
            elif last in FRAME_METHODS and "." in name:
                yield ScriptFinding(call.lineno, Support.YES, last)
            elif name.endswith(".apply") and name.split(".")[-2] in (exported("awsglue.transforms") or ()):
                yield ScriptFinding(call.lineno, Support.YES, ".".join(name.split(".")[-2:]))
            elif name in ("boto3.client", "boto3.resource") and self._first(call) == "glue":
                note = "it calls Glue's own API, which goes on to answer for what is in AWS and not for runs here"
                yield ScriptFinding(call.lineno, Support.WORD, f"{name}('glue')", note)

    def _glue_call(self, name: str, call: ast.Call, form: CallForm) -> Iterator[ScriptFinding]:
        last = name.rpartition(".")[2]
        shown = ".".join(name.split(".")[-2:]) if last.startswith("from_") else last
        given = self.source.arguments(call, form.parameters)
        notes = [
            *self._connection(given, form),
            *self._redshift(given, form),
            *self._format(given),
            *self._options(given),
            *self._context(given, form, call),
        ]
        if form.does == "purge":
            notes.append((Support.WORD, "under enable the purge is part of the commit: files are there until then"))
        if form.does == "whole":
            notes.append((Support.WORD, "a DataFrame read is read whole in each run, as in Glue"))
        refused = [note for note in notes if note[0] is Support.NO]
        worst = refused or [note for note in notes if note[0] is Support.WORD]
        if not worst:
            yield ScriptFinding(call.lineno, Support.YES, shown)
        for support, note in worst:
            yield ScriptFinding(call.lineno, support, shown, note)

    def _connection(self, given: Mapping[str, ast.expr], form: CallForm) -> Iterator[tuple[Support, str]]:
        if "connection_type" not in given:
            return
        value = self.source.value(given["connection_type"])
        if not isinstance(value, str):
            yield Support.WORD, "its connection_type is known when it runs: files and databases are supported"
            return
        for prefix, note in CONNECTION_PREFIXES.items():
            if value.startswith(prefix):
                yield Support.NO, f"connection_type {value!r}: {note}"
                return
        if form.does == "write" and value in READ_ONLY:
            yield Support.NO, f"connection_type {value!r} can be read here, and not written: {READ_ONLY[value]}"
            return
        if form.does == "write" and value in WRITTEN_AT_ONCE:
            yield Support.WORD, f"connection_type {value!r}: {AT_ONCE}"
            return
        unknown = (Support.NO, "this connection type is not part of this layer")
        support, note = CONNECTIONS.get(value, unknown)
        yield support, f"connection_type {value!r}: {note}"

    def _redshift(self, given: Mapping[str, ast.expr], form: CallForm) -> Iterator[tuple[Support, str]]:
        if form.does != "write":
            return
        folder, options = given.get("redshift_tmp_dir"), self._known_options(given)
        has_folder = "redshifttmpdir" in options or (folder is not None and self.source.value(folder) != "")
        is_redshift = self.source.value(given.get("connection_type")) == "redshift"
        if is_redshift and not has_folder:
            yield Support.WORD, f"connection_type 'redshift': {WITHOUT_FOLDER}"
        for name, check in _OF_LOADS.items() if has_folder else ():
            value = options.get(name)
            try:
                check(value if isinstance(value, str) else None)
            except OptionError as error:
                where = "with enable" if is_redshift else "with enable, if it is a table of Redshift"
                yield Support.WORD, f"{name}: an error {where}: {error}"

    def _known_options(self, given: Mapping[str, ast.expr]) -> dict[str, object]:
        """Return what the dicts of a write say, by names in small letters, as far as its source tells."""
        dicts = [self.source.value(given.get(name)) for name in ("connection_options", "additional_options")]
        return {
            key.lower(): value
            for each in dicts
            if isinstance(each, dict)
            for key, value in each.items()
            if isinstance(key, str)
        }

    def _format(self, given: Mapping[str, ast.expr]) -> Iterator[tuple[Support, str]]:
        value = self.source.value(given.get("format"))
        if isinstance(value, str) and value not in FORMATS:
            yield Support.NO, f"format {value!r} is not part of this layer: {', '.join(sorted(FORMATS))} are"

    def _options(self, given: Mapping[str, ast.expr]) -> Iterator[tuple[Support, str]]:
        for name in ("connection_options", "additional_options", "format_options"):
            options = self.source.value(given.get(name))
            if isinstance(options, dict):
                keys = {key for key in options if isinstance(key, str)}
                yield from ((Support.WORD, OPTION_NOTES[key]) for key in sorted(keys & OPTION_NOTES.keys()))
                path = options.get("jsonPath")
                if isinstance(path, str) and not JSON_PATH.fullmatch(path):
                    yield Support.NO, f"jsonPath {path!r}: $ and paths such as $.a.b[*] are supported"
                if {"boundedFiles", "boundedSize"} <= keys:
                    yield Support.NO, "boundedFiles and boundedSize are both given: an error, as one excludes the other"

    def _context(self, given: Mapping[str, ast.expr], form: CallForm, call: ast.Call) -> Iterator[tuple[Support, str]]:
        if form.does != "read":
            return
        node = given.get("transformation_ctx")
        value = self.source.value(node)
        if value is None or value == "":
            if not any(keyword.arg is None for keyword in call.keywords):
                yield Support.WORD, "no transformation_ctx: it is read whole in each run, as in Glue"
        elif isinstance(value, str):
            first = self.contexts.setdefault(value, call.lineno)
            if first != call.lineno:
                note = f"the context {value!r} is that of the read in line {first}: two sources need two names"
                yield Support.NO, note

    def _resolved(self, call: ast.Call) -> Iterator[ScriptFinding]:
        names = self.source.value(call.args[1]) if len(call.args) > 1 else None
        if isinstance(names, list):
            self.arguments += [name for name in names if isinstance(name, str)]
        yield ScriptFinding(call.lineno, Support.YES, "getResolvedOptions")

    def _mappings(self) -> Iterator[ScriptFinding]:
        for name, call in self.source.calls():
            parameters = _MAPPINGS.get(name.rpartition(".")[2]) or _MAPPINGS.get(".".join(name.split(".")[-2:]))
            if parameters is None:
                continue
            mappings = self.source.value(self.source.arguments(call, parameters).get("mappings"))
            for mapping in mappings if isinstance(mappings, list) else ():
                kind = mapping[3] if isinstance(mapping, list) and len(mapping) == 4 else None
                if isinstance(kind, str) and not is_type(kind):
                    source = f" of {mapping[0]!r}" if isinstance(mapping[0], str) else ""
                    note = f"no type is called {kind!r}: the mapping{source} is an error"
                    yield ScriptFinding(call.lineno, Support.NO, "ApplyMapping", note)

    # ---- what is looked up

    def _members(self) -> Iterator[ScriptFinding]:
        contexts = {*self.source.made_by("GlueContext"), *_CONTEXT_NAMES}
        known = CONTEXT_MEMBERS | SQL_CONTEXT_MEMBERS | OUT_OF_REACH.keys()
        for name, line in self.source.attributes():
            parts = name.split(".")
            if parts[-1] in _JVM and (parts[-1] == "_glue_scala_context" or parts[0] in contexts):
                yield ScriptFinding(
                    line, Support.NO, name, "it reaches into Glue's own JVM classes, which are not here"
                )
            elif parts[-1] in _JVM:
                yield ScriptFinding(
                    line, Support.WORD, name, "it reaches into Spark's JVM, whose classes are those of your Spark"
                )
            elif name.rpartition(".")[0] in contexts and parts[-1] not in known.union(_JVM):
                yield ScriptFinding(line, Support.NO, f"GlueContext.{parts[-1]}", "not part of this layer")

    def _spark_reads(self) -> Iterator[ScriptFinding]:
        for name, line in self.source.attributes():
            read = next((read for read in _SPARK_READS if name == read or name.endswith(f".{read}")), None)
            if read is not None:
                yield ScriptFinding(line, Support.WORD, read, "a read by Spark has no bookmark, as in Glue")
        for name, call in self.source.calls():
            if name.endswith(_SQL) and not self._is_of_views(call):
                note = "a table of the Data Catalog is found only where Spark's own catalog is that one"
                yield ScriptFinding(call.lineno, Support.WORD, "spark.sql", note)

    def _is_of_views(self, call: ast.Call) -> bool:
        """Whether all that a statement reads are views which the script itself has made."""
        statement = self.source.value(call.args[0]) if call.args else UNKNOWN
        if not isinstance(statement, str):
            return False
        made = [
            self.source.value(each.args[0])
            for name, each in self.source.calls()
            if name.rpartition(".")[2] in _VIEWS and each.args
        ]
        views = {name.lower() for name in made if isinstance(name, str)}
        read = {name.strip("`").lower() for name in _READ_BY_SQL.findall(statement)}
        return read <= views

    # ---- the job

    @property
    def _jobs(self) -> set[str]:
        return {*self.source.made_by("Job"), "job"}

    def _job(self) -> Iterator[ScriptFinding]:
        jobs = self._jobs
        calls = [(name, call) for name, call in self.source.calls() if name.rpartition(".")[0] in jobs]
        inits = [call for name, call in calls if name.endswith(".init")]
        commits = [call for name, call in calls if name.endswith(".commit")]
        for call in inits:
            yield self._init(call)
        yield from (ScriptFinding(call.lineno, Support.YES, "Job.commit") for call in commits)
        if inits and not commits:
            note = "there is no job.commit(): nothing is committed, and each run reads all of it again"
            yield ScriptFinding(inits[0].lineno, Support.WORD, "Job.init", note)
        if self.contexts and not inits and not self._is_handed_on(jobs):
            line = min(self.contexts.values())
            note = "contexts without job.init have no bookmark: they are read whole in each run, as in Glue"
            yield ScriptFinding(line, Support.WORD, "transformation_ctx", note)

    def _is_handed_on(self, jobs: Collection[str]) -> bool:
        """Whether a function of the script's own, or of a helper, gets the job, and may begin it."""
        given = (each for _, call in self.source.calls() for each in (*call.args, *(k.value for k in call.keywords)))
        return any(isinstance(each, ast.Name) and each.id in jobs for each in given)

    def _init(self, call: ast.Call) -> ScriptFinding:
        name = self.source.origin(call.args[0]) if call.args else None
        if name is None or self._is_job_name(name):
            return ScriptFinding(call.lineno, Support.YES, "Job.init")
        value = self.source.value(name)
        said = repr(value) if value is not UNKNOWN else f"by {dotted(name) or 'an expression'}"
        note = f"the script names the job itself ({said}): the task has to say the same by bookmark_job"
        return ScriptFinding(call.lineno, Support.WORD, "Job.init", note)

    def _is_job_name(self, node: ast.expr) -> bool:
        """Whether an expression is the argument JOB_NAME: `args["JOB_NAME"]`, or `args.get("JOB_NAME", ...)`."""
        if isinstance(node, ast.Call) and dotted(node.func).endswith(".get") and node.args:
            return bool(self.source.value(node.args[0]) == "JOB_NAME")
        return isinstance(node, ast.Subscript) and self.source.value(node.slice) == "JOB_NAME"

    def _first(self, call: ast.Call) -> Any:
        named = self.source.arguments(call, ("service_name",))
        return self.source.value(named.get("service_name"))


@cache
def exported(module: str) -> frozenset[str] | None:
    """Return the names that a module of `awsglue` has here; None if it is not part of this layer.

    Read from its source: to import it takes Spark.

    Example:
        >>> sorted(exported("awsglue.job")), exported("awsglue.no_such")
        (['Job'], None)
    """
    place = _PATH.joinpath(*module.split("."))
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    if not file.is_file():
        return None
    names: set[str] = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign) and "__all__" in map(dotted, node.targets):
            names |= set(ast.literal_eval(node.value))  # what is looked up when it is asked for is there as well
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(name for name in names if not name.startswith("__"))

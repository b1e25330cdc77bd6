"""README.md and the like, docs/*.md: each verb is there, each command can be typed, outputs are real, links work.

The console blocks of docs/operations/command_line.md run here, each in a fresh copy of one small world; what the clock,
the disk and chance decide is left out of the comparison. After a change of the output:

    $ python -m tests.repository.test_docs      # writes the blocks anew
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from airflow_bookmarks.cli import main
from airflow_bookmarks.cli.command import STORE_VARIABLE, VERBS, _parser
from airflow_bookmarks.core.selection import reason
from airflow_bookmarks.core.text.identity import Identity
from airflow_bookmarks.lifecycle.changes import present_identity
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.store import uri as address
from airflow_bookmarks.store.bookmark_store import open_store
from tests.lifecycle.shop import Shop
from tools.patience import STUCK_S

_ROOT = Path(__file__).parents[2]
_DOCS = _ROOT / "docs"
_OPERATIONS = _DOCS / "operations" / "command_line.md"
_GUARANTEES = _DOCS / "concepts" / "guarantees.md"
_PAGES = [*(_ROOT / f"{name}.md" for name in ("README", "SECURITY", "CONTRIBUTING")), *sorted(_DOCS.rglob("*.md"))]
_NAMES = [page.name for page in _PAGES]
_JOB = "flights.clean"


# ---- Markdown, as far as the pages use it


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the heading above it, its lines, and the number of its first line from 0."""

    language: str
    heading: str
    at: int
    lines: tuple[str, ...]


def blocks_of(page: Path) -> Iterator[Block]:
    lines, heading, start = page.read_text().split("\n"), "", None
    for at, line in enumerate(lines):
        if line.startswith("```"):
            if start is None:
                start = at + 1
            else:
                yield Block(lines[start - 1][3:], heading, start, tuple(lines[start:at]))
                start = None
        elif start is None and line.startswith("#"):
            heading = line.lstrip("# ")


def prose_of(page: Path) -> str:
    """Return a page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def code_in(text: str) -> list[str]:
    """Return the code within the lines of a text."""
    return re.findall(r"`([^`\n]+)`", text)


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", prose_of(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


# ---- links


def targets_in(page: Path) -> list[str]:
    """Return what a page links to, as it is written."""
    return re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]+`", "", prose_of(page)))


@pytest.mark.parametrize("page", _PAGES, ids=_NAMES)
def test_links_point_to_files_and_headings_that_exist(page: Path) -> None:
    for target in targets_in(page):
        if re.match(r"[a-z]+:", target):
            continue  # another site
        path, _, anchor = target.partition("#")
        pointed = (page.parent / path).resolve() if path else page
        assert pointed.exists(), f"{page.name} points to {target}"
        assert not anchor or anchor in anchors_of(pointed), f"{page.name} points to {target}"


def test_index_links_every_page() -> None:
    index = _DOCS / "index.md"
    linked = {(_DOCS / target.partition("#")[0]).resolve() for target in targets_in(index)}
    assert not {page.relative_to(_DOCS) for page in _DOCS.rglob("*.md") if page not in {index, *linked}}


@pytest.mark.parametrize("page", _PAGES, ids=_NAMES)
def test_paragraphs_are_short(page: Path) -> None:
    for block in prose_of(page).split("\n\n"):
        for paragraph in re.split(r"\n(?=- |\d+\. |\|)", block):
            assert paragraph.startswith("|") or len(paragraph.strip()) <= 600, paragraph


# ---- tests that pages name

# Pages about tests and for those who write them; tools.matrix writes the last one.
_OF_TESTS = {_ROOT / "CONTRIBUTING.md", *_DOCS.glob("contributing/*.md"), _GUARANTEES}
_OF_TESTS |= {_DOCS / "concepts" / "promises.md", _DOCS / "reference" / "compatibility.md"}


def said_to_users(page: Path) -> str:
    """Return a page's prose without comments, and without the tests that tests/clusters/test_page.py reads from it."""
    said = re.sub(r"<!--.*?-->", "", prose_of(page), flags=re.DOTALL)
    if page == _DOCS / "guides" / "clusters.md":
        said = re.sub(r"^## Recovery$.*?(?=^## |\Z)", "", said, flags=re.MULTILINE | re.DOTALL)
    return said


@pytest.mark.parametrize("page", [pytest.param(page, id=page.name) for page in _PAGES if page not in _OF_TESTS])
def test_page_for_users_names_no_test(page: Path) -> None:
    assert not re.findall(r"\btests/\S+|\btest_\w+\.py\b|`test_\w+`", said_to_users(page)), f"say it in {_GUARANTEES}"


def test_tests_behind_the_guides_are_there() -> None:
    section = _GUARANTEES.read_text().partition("## Tests behind the guides")[2]
    named = re.findall(r"`(tests/[\w/.]+)((?:::\w+)*)`", section)
    assert named
    for path, names in named:
        assert (_ROOT / path).exists(), path
        for name in names.split("::")[1:]:
            assert re.search(rf"^ *(def|class) {name}\b", (_ROOT / path).read_text(), re.MULTILINE), f"{path}{names}"


# ---- the site


def test_site_has_each_page_and_is_built_without_a_warning(tmp_path: Path) -> None:
    listed = set(re.findall(r"(\S+\.md)$", (_ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert listed == {str(page.relative_to(_ROOT / "docs")) for page in (_ROOT / "docs").rglob("*.md")}
    site = ["mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run([sys.executable, "-m", *site], cwd=_ROOT, capture_output=True, text=True, timeout=STUCK_S)
    assert done.returncode == 0, done.stderr
    assert "BookmarkedJob" in (tmp_path / "reference" / "python" / "index.html").read_text()


# ---- verbs and commands


@pytest.mark.parametrize("verb", [verb.name for verb in VERBS])
@pytest.mark.parametrize("name", ["command_line.md", "iam.md"])
def test_each_verb_is_in_the_page(name: str, verb: str) -> None:
    said = code_in(prose_of(_ROOT / "docs" / "operations" / name))
    assert [code for code in said if code.split()[0] == verb], f"docs/{name} does not name {verb}"


def commands_in(page: Path) -> Iterator[str]:
    """Yield the commands of both doors that a page writes out, in the form of `airflow-bookmarks`."""
    typed = [code for code in code_in(prose_of(page)) if "..." not in code]
    for block in blocks_of(page):
        whole = "\n".join(block.lines).replace("\\\n", " ")
        typed += [line.removeprefix("$ ") for line in whole.split("\n") if line.startswith("$ ")]
    for line in typed:
        if line.startswith(("airflow-bookmarks ", "airflow bookmarks ")):
            yield re.sub("^airflow bookmarks ", "airflow-bookmarks ", re.sub(r" --conn-id \S+", "", line))


@pytest.mark.parametrize("page", _PAGES, ids=_NAMES)
def test_commands_are_ones_that_the_command_line_takes(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in commands_in(page):
        assert is_taken(command), f"{page.name}: {command}: {capsys.readouterr().err}"


def is_taken(command: str) -> bool:
    """Whether the parser takes a command, which then is not run."""
    try:
        _parser().parse_args(words_of(command)[0])
    except SystemExit as exit_:
        return exit_.code == 0  # --help
    return True


@pytest.mark.parametrize("name", ["command_line.md", "iam.md"])
def test_options_in_the_row_of_a_verb_are_options_of_it(name: str) -> None:
    options = {verb.name: {flag for one in verb.arguments for flag in one.flags} for verb in VERBS}
    of_all = {"--store", "--output", "--help", "--conn-id"}
    for line in prose_of(_ROOT / "docs" / "operations" / name).split("\n"):
        row_of = re.match(r"\| `(\w+)[^|`]*` \|", line)
        is_row = row_of is not None and row_of[1] in options
        verbs = options.keys() & {code.split()[0] for code in code_in(line)} if is_row else set()
        known = of_all.union(*(options[verb] for verb in verbs or options))
        named = {word for code in code_in(line) for word in code.split() if word.startswith("--")}
        assert named <= known, f"docs/{name}: {line}"


def test_table_of_the_address_has_each_of_its_parameters_and_no_other() -> None:
    section = prose_of(_ROOT / "docs" / "operations" / "store_address.md").partition("### The rest of the address")[2]
    told = {row[1]: row[2] for row in re.finditer(r"^\| `(\w+)` \| (\w+) \|", section, re.MULTILINE)}
    of = {"dynamodb": "DynamoDB", "sqlite": "SQLite"}
    takers = {name: [of[scheme] for scheme in of if name in address._PARAMETERS[scheme]] for name in told}
    assert set(told) == {name for names in address._PARAMETERS.values() for name in names}
    assert told == {name: "both" if len(schemes) == 2 else schemes[0] for name, schemes in takers.items()}


def words_of(command: str) -> tuple[list[str], list[str]]:
    """Return the words after the program's name, and those from a pipe or redirection on."""
    words = shlex.split(command, comments=True)[1:]
    end = next((at for at, word in enumerate(words) if word in ("|", ">")), len(words))
    return words[:end], words[end:]


# ---- reasons


def test_table_of_what_is_left_out_has_each_reason_and_no_other() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", (_ROOT / "docs" / "guides" / "left_out.md").read_text(), flags=re.MULTILINE)
    assert rows == [word for name, word in vars(reason).items() if name.isupper()]


def test_page_explains_each_reason_to_leave_something_out_and_no_other() -> None:
    page = _ROOT / "airflow_bookmarks" / "plugin" / "www" / "src" / "job" / "overview" / "leftOut.ts"
    explained = re.findall(r"^  (\w+): \{ what: ", page.read_text(), flags=re.MULTILINE)
    assert explained == [word for name, word in vars(reason).items() if name.isupper()]


# ---- console blocks


def three_days(root: Path) -> Shop:
    """Make a job with a run for each of three days, and a consumer of it."""
    store = open_store(f"sqlite:///{root}/bookmarks.db")
    store.init()
    shop = Shop(root, store)
    for day in (18, 19, 20):
        deliver(shop, day)
        shop.run(_JOB, f"flights/{day}/clean")
    shop.run("flights.daily", "flights/20/daily", upstream=_JOB)
    return shop


def deliver(shop: Shop, day: int) -> None:
    shop.put(f"2026-11-{day}.csv", *"abc"[: day - 17], seconds=1_794_960_000 + (day - 18) * 86_400)


def hold(shop: Shop) -> None:
    """Leave a driver dead that holds the job, and has committed what is not visible yet."""
    deliver(shop, 21)
    shop.environment = RunEnvironment(at=_die_before_publishing, start_thread=lambda _: None)
    run = shop.begin(_JOB, "flights/21/clean")
    shop.copy(run)
    with contextlib.suppress(InterruptedError):
        run.commit()


def _die_before_publishing(point: Failpoint) -> None:
    if point is Failpoint.PUBLISHING:
        raise InterruptedError("the driver died")


def lose_a_file(shop: Shop) -> None:
    """Remove a published file behind the job's back."""
    next(path for path in sorted((shop.root / _JOB).rglob("*.txt")) if "2026-11-19" in str(path)).unlink()


def nest(shop: Shop) -> None:
    """Make runs of another job, whose files lie four partition columns deep; a step of a run takes a second."""
    seconds = map(float, itertools.count())
    slow = RunEnvironment(monotonic=lambda: next(seconds), start_thread=lambda _: None)
    legs = Shop(shop.root / "legs", shop.store, slow)
    for day in (18, 19, 20):
        for origin in ("EWR", "JFK", "LGA"):
            legs.put(f"origin={origin}/year=2026/month=11/day={day}/legs.csv", origin)
        legs.run("flights.legs", f"legs/{day}")


def nothing(shop: Shop) -> None:
    """Leave the three days as they are."""


_SCENES: dict[str, Callable[[Shop], None]] = {
    "A job is held": hold,
    "Proving the state": lose_a_file,
    "Advice": nest,
}
_PEOPLE = {"$ ": "ada", "bob$ ": "bob"}


_SHOWN_ROOT = "/data/flights"  # as long as a folder for `write_anew`, so that columns keep their width


def transcript(block: Block, root: Path, setenv: Callable[[str, str], None], be: Callable[[str], None]) -> list[str]:
    """Run the commands of a block in its world under `root`; return them with what each printed."""
    shop = three_days(root)
    _SCENES.get(block.heading, nothing)(shop)
    setenv(STORE_VARIABLE, f"sqlite:///{root}/bookmarks.db")
    printed: list[str] = []
    for line in block.lines:
        prompt = next((prompt for prompt in _PEOPLE if line.startswith(f"{prompt}airflow-bookmarks ")), None)
        if prompt is None:
            continue
        be(_PEOPLE[prompt])
        # The request that a page names is the one that was made before.
        asked = re.findall(_ULID, "\n".join(printed))
        command = re.sub(_ULID, lambda _, asked=asked: asked[-1], line.removeprefix(prompt))  # type: ignore[misc]
        printed += [f"{prompt}{command}", *printed_by(command, root)]
    return printed


def printed_by(command: str, root: Path) -> list[str]:
    """Run one command in `root`; return what a terminal shows, stderr first."""
    words, rest = words_of(command)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.chdir(root):
        main(words)
    shown = out.getvalue().splitlines()
    match rest:
        case [">", _]:
            shown = []
        case ["|", "head", count]:
            shown = shown[: int(count.removeprefix("-"))]
        case _:
            assert not rest, f"no way to run {rest}"
    return [line.replace(str(root), _SHOWN_ROOT) for line in [*err.getvalue().splitlines(), *shown]]


_ULID = r"\b[0-9A-HJKMNP-TV-Z]{26}\b"
# The files of the world are dated midnight; any other time is the clock's.
_CLOCK = r"\d{4}-\d\d-\d\dT(?!00:00:00\.000000)\d\d:\d\d:\d\d\.\d{6}Z"


def without_chance(lines: list[str] | tuple[str, ...]) -> list[str]:
    """Return lines without what differs from run to run."""
    text = re.sub(_CLOCK, "<time>", re.sub(_ULID, "<id>", "\n".join(lines)))
    return [re.sub(r"  +", "  ", line) for line in text.split("\n")]


def consoles() -> list[Block]:
    return [block for block in blocks_of(_OPERATIONS) if block.language == "console"]


@pytest.mark.parametrize("block", [pytest.param(block, id=block.heading) for block in consoles()])
def test_output_in_the_page_is_what_the_command_line_prints(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def be(name: str) -> None:
        monkeypatch.setattr(present_identity, "os_identity", lambda: Identity(name, True, "os"))

    printed = transcript(block, tmp_path, monkeypatch.setenv, be)
    shown = [line for line in block.lines if not line.startswith("$ export ")]
    assert without_chance(printed) == without_chance(shown)


def write_anew() -> None:
    """Write what the command line prints into docs/operations/command_line.md."""

    def be(name: str) -> None:
        present_identity.os_identity = lambda: Identity(name, True, "os")

    lines = _OPERATIONS.read_text().split("\n")
    for block in reversed(consoles()):
        with tempfile.TemporaryDirectory(prefix="", dir="/tmp") as folder:
            printed = transcript(block, Path(folder), os.environ.__setitem__, be)
        kept = [line for line in block.lines if line.startswith("$ export ")]
        lines[block.at : block.at + len(block.lines)] = [*kept, *printed]
    _OPERATIONS.write_text("\n".join(lines))


if __name__ == "__main__":
    write_anew()

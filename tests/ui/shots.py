"""Take the pictures of the docs: `python -m tests.ui.shots` writes them to docs/images, of a page that is built."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from playwright.sync_api import Browser, Route, expect

from tests.ui import chromium
from tests.ui.places import PLACES, Place
from tests.ui.server import Server, running_server
from tests.ui.visit import PATIENCE_MS, Scheme, visit
from tests.ui.world import ODD, World

PROJECT = Path(__file__).parents[2]
IMAGES = PROJECT / "docs" / "images"
# The places that the docs show, by the name of the picture.
SHOWN = {
    "jobs": "jobs",
    "job": "job-overview",
    "job-runs": "job-runs",
    "job-charts": "job-charts",
    "job-graph": "job-graph",
    "preview": "preview-rewind",
    "dag": "dag",
}
MOST_BYTES = 200_000
_SCHEMES: tuple[Scheme, ...] = ("light", "dark")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a server with a seeded store, take all pictures, and say how large they are."""
    asked = _parser().parse_args(arguments)
    stale = why_stale()
    if stale is not None:
        print(stale, file=sys.stderr)
        return 1
    program = chromium.find()
    if program is None:
        print(chromium.HOW_TO, file=sys.stderr)
        return 1
    asked.to.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=PATIENCE_MS)
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bookmarks-shots-")))
        world = World.open(root / "world")
        world.seed()
        server = stack.enter_context(running_server(root / "server", world.uri, look_below=str(world.root)))
        browser = stack.enter_context(chromium.running(program))
        written = list(_shots(browser, server, f"{root}/world", asked.to))
    too_large = [path for path in written if path.stat().st_size > MOST_BYTES]
    for path in written:
        print(f"{path.stat().st_size:>8,} bytes  {path}")
    if too_large:
        print(f"above {MOST_BYTES:,} bytes: {', '.join(path.name for path in too_large)}", file=sys.stderr)
    return 1 if too_large else 0


def why_stale(project: Path = PROJECT) -> str | None:
    """Say why the bundle of the page can't be taken pictures of; None if it is what its sources make."""
    told = subprocess.run([project / "tools" / "page.sh", "is-built"], capture_output=True, text=True, check=False)
    return None if told.returncode == 0 else told.stderr.strip()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.ui.shots", description=__doc__)
    parser.add_argument("--to", type=Path, default=IMAGES, help="the folder for them (default: docs/images)")
    return parser


def _shots(browser: Browser, server: Server, root: str, folder: Path) -> Iterator[Path]:
    places = {place.name: place for place in (*PLACES, Place("jobs"))}
    for scheme in _SCHEMES:
        come = visit(browser, server, "admin", scheme=scheme)
        # A temporary folder of this machine is no news to anybody: the lake has the name that one would give it.
        come.page.route("**/bookmarks/api/v1/**", lambda route: _answer_without(root, route))
        for picture, name in SHOWN.items():
            path = folder / f"page-{picture}-{scheme}.png"
            places[name].go(come).screenshot(path=path)
            yield path
        come.page.context.close()


def _answer_without(root: str, route: Route) -> None:
    """Answer without the folder of this machine, and without jobs whose names are there to be awkward."""
    answer = route.fetch()
    told = json.loads(answer.text().replace(root, ""))
    if isinstance(told, dict) and "jobs" in told:
        told["jobs"] = [row for row in told["jobs"] if row["job"] not in ODD]
    route.fulfill(response=answer, json=told)


if __name__ == "__main__":
    sys.exit(main())

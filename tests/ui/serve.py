"""Serve the page to look at it: `python -m tests.ui.serve`. Ends with Ctrl-C, and leaves nothing behind."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from tests.ui.server import USERS, password_of, running_server
from tests.ui.world import DAMAGED, World


def main(arguments: Sequence[str] | None = None) -> int:
    """Run an API server with a seeded store until it is interrupted."""
    asked = _parser().parse_args(arguments)
    # A terminate ends the server in the same way as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="bookmarks-page-", dir=asked.below) as folder:
        root = Path(folder)
        world = World.open(root / "world")
        world.seed()
        if asked.jobs:
            world.copy_jobs(asked.jobs)
        if asked.damage:
            world.damage()
        how = {"base_path": asked.base_path, "port": asked.port, "look_below": str(world.root)}
        with running_server(root / "server", world.uri, **how) as server:
            print(f"{server.url}plugin/bookmarks")
            print(f"store: {world.uri}")
            for user in USERS:
                print(f"  log in as {user} with {password_of(user)}")
            sys.stdout.flush()
            if asked.url_file is not None:
                asked.url_file.write_text(server.url)
            if asked.open:
                webbrowser.open(f"{server.url}plugin/bookmarks")
            try:
                signal.pause()
            except KeyboardInterrupt:
                print("ends")
            finally:
                if asked.url_file is not None:
                    asked.url_file.unlink(missing_ok=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.ui.serve", description=__doc__)
    parser.add_argument("--url-file", type=Path, help="write the address there, and remove the file at the end")
    parser.add_argument("--jobs", type=int, default=0, metavar="N", help="add N small jobs, for a look at the scale")
    parser.add_argument("--damage", action="store_true", help=f"damage the state of the job {DAMAGED}")
    parser.add_argument("--base-path", default="", metavar="PATH", help="serve below this path, e.g. /tools/airflow")
    parser.add_argument("--open", action="store_true", help="open it in the browser of this machine")
    parser.add_argument("--port", type=int, help="a port of the loopback (default: a free one)")
    parser.add_argument("--below", type=Path, help="make the temporary folder there (default: the system's)")
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""States kept from earlier versions: made once by the code of their time, and read by every version since.

    $ python -m tests.lifecycle.kept_state tests/lifecycle/states/0.1.0-first.json     # with the code to be kept

A state holds paths, and hashes of them: so its world lies below the working directory, by a path that is the same
wherever that is. Files are kept with their times, items as SQLite has them.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from airflow_bookmarks.lifecycle.changes.change import reset, rewind, set_position
from airflow_bookmarks.sinks.staging import Mode
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.lifecycle.shop import Shop

ROOT = Path("/proc/self/cwd/world")
WHY: dict[str, Any] = {"reason": "kept for later versions", "who": "old hand"}


def make(shop: Shop) -> None:
    """Let some jobs live: appends, an overwrite, a consumer, a replay, changes of history, a driver that died."""
    for day in range(1, 4):
        shop.put(f"day={day}/a.csv", f"{day}a1", f"{day}a2")
        shop.run(run_id=f"copy/{day}")
    shop.run("report", upstream="copy")
    shop.put("day=2/a.csv", "2a1-corrected", seconds=1_700_000_100)
    shop.run(run_id="copy/4")
    shop.run(run_id="copy/5")  # empty
    shop.run("rewound")
    shop.put("day=4/a.csv", "4a1")
    shop.run("rewound")
    rewind(shop.store, "rewound", "1", **WHY)
    shop.run("reset")
    reset(shop.store, "reset", clean=True, **WHY)
    shop.run("set")
    set_position(shop.store, "set", "raw", "now", **WHY)
    kept = shop.begin("stateful")
    shop.copy(kept)
    kept.state("cursor").set({"page": 7})
    kept.commit()
    Shop(shop.root, shop.store, mode=Mode.OVERWRITE, runs_made=100).run("overwriting")
    shop.side_lines("pause", "2", "4")
    shop.copy(shop.begin("died"))  # planned and staged; its driver ends with this program, and its lease soon after


def dump(root: Path, database: Path) -> dict[str, Any]:
    """Return items and files as JSON values."""
    with closing(sqlite3.connect(database)) as connection:
        items = [list(row) for row in connection.execute("SELECT pk, sk, attributes FROM items ORDER BY pk, sk")]
    files = {
        str(path.relative_to(root)): [path.read_text(), path.stat().st_mtime_ns]
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
    return {"items": items, "files": files}


def restore(kept: Path, database: Path) -> Shop:
    """Lay a kept world below the working directory, and open its state."""
    state = json.loads(kept.read_text())
    ROOT.mkdir()
    for name, (text, mtime_ns) in state["files"].items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, ns=(mtime_ns, mtime_ns))
    table = SqliteTable(database, create=True)
    BookmarkStore(table, "test").init()
    table.close()
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.executemany("INSERT OR REPLACE INTO items VALUES (?, ?, ?)", state["items"])
    return Shop(ROOT, BookmarkStore(SqliteTable(database), "test"), runs_made=1000)


def main(out: str) -> None:
    """Make a state with the present code, and write it to `out`."""
    target = Path(out).absolute()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        ROOT.mkdir()
        table = SqliteTable(Path("state.db"), create=True)
        store = BookmarkStore(table, "test")
        store.init()
        make(Shop(ROOT, store))
        table.close()
        text = json.dumps(dump(ROOT, Path("state.db")), indent=0, ensure_ascii=False, sort_keys=True)
        os.chdir("/")
    target.write_text(f"{text}\n")


if __name__ == "__main__":
    main(sys.argv[1])

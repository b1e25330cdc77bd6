"""Put what was measured last into `docs/reference/benchmarks.md`: the pictures, the lines to reach, and the tables.

$ python -m benchmarks.document
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RESULT, PAGE, IMAGES = Path("build/bench"), Path("docs/reference/benchmarks.md"), Path("docs/images")
# Where the reports lie, by the marks between which each stands on the page.
_SECTIONS = {
    "measured": RESULT,
    "measured: databases": RESULT / "databases",
    "measured: tables": RESULT / "tables",
}
_PREFIX = "bench-"


def main() -> int:
    """Rewrite what lies between the marks of the page, of each report that is there; return the exit code."""
    for mark, folder in _SECTIONS.items():
        if (folder / "report.json").exists():
            before, begin, rest = PAGE.read_text().partition(f"<!-- {mark} -->")
            _, end, after = rest.partition(f"<!-- /{mark} -->")
            PAGE.write_text("\n".join([f"{before}{begin}", *_section(folder), f"{end}{after}"]))
    return 0


def _section(folder: Path) -> Iterator[str]:
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    machine = report["machine"]
    yield f"Measured with {machine['cores']} cores, Python {machine['python']}.\n"
    for name, chart in report["charts"].items():
        drawn = folder / f"{name}.png"
        if chart["cases"] and drawn.exists():
            shutil.copyfile(drawn, IMAGES / f"{_PREFIX}{drawn.name}")
            yield f"![{chart['title']}]({os.path.relpath(IMAGES, PAGE.parent)}/{_PREFIX}{drawn.name})\n"
    yield (folder / "report.md").read_text()


if __name__ == "__main__":
    sys.exit(main())

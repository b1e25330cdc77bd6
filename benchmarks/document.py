"""Put what was measured last into `docs/reference/benchmarks.md`: the pictures, the lines to reach, and the table.

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
_BEGIN, _END = "<!-- measured -->", "<!-- /measured -->"
_PREFIX = "bench-"


def main() -> int:
    """Rewrite what lies between the marks of the page; return the exit code."""
    report: dict[str, Any] = json.loads((RESULT / "report.json").read_text())
    before, _, rest = PAGE.read_text().partition(_BEGIN)
    _, _, after = rest.partition(_END)
    PAGE.write_text("\n".join([f"{before}{_BEGIN}", *_section(report), f"{_END}{after}"]))
    return 0


def _section(report: dict[str, Any]) -> Iterator[str]:
    machine = report["machine"]
    yield f"Measured with {machine['cores']} cores, Python {machine['python']}.\n"
    for name, chart in report["charts"].items():
        drawn = RESULT / f"{name}.png"
        if chart["cases"] and drawn.exists():
            shutil.copyfile(drawn, IMAGES / f"{_PREFIX}{drawn.name}")
            yield f"![{chart['title']}]({os.path.relpath(IMAGES, PAGE.parent)}/{_PREFIX}{drawn.name})\n"
    yield (RESULT / "report.md").read_text()


if __name__ == "__main__":
    sys.exit(main())

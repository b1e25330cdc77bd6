"""Scripts and folders read, and what is said of them: one row per thing that a person has to look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.inventory.finding import ScriptFinding
from airflow_bookmarks.glue.inventory.reading import ScriptNeeds, read_script
from airflow_bookmarks.glue.inventory.surface import Support

SCRIPT_COLUMNS = ("script", "verdict", "supported", "word", "out", "arguments")
FINDING_COLUMNS = ("script", "line", "verdict", "what", "note")
TARGET_COLUMNS = ("script", "line", "what", "fixed_target")

_NOTHING = "nothing of Glue"
_OTHER_LANGUAGES = {
    ".scala": "it is written in Scala, and this layer runs Python",
    ".ipynb": "it is a notebook: export it as a script",
}


@dataclass(frozen=True, slots=True)
class ScriptReport:
    """One script, by its path, and what it needs."""

    path: Path
    needs: ScriptNeeds

    @property
    def verdict(self) -> str:
        """The worst of what is found, in words."""
        return self.needs.verdict or _NOTHING

    def row(self) -> dict[str, Any]:
        """Return it as one row of a table."""
        counts = [len(self.needs.of(support)) for support in Support]
        return {
            "script": str(self.path),
            "verdict": str(self.verdict),
            **dict(zip(("supported", "word", "out"), counts, strict=True)),
            "arguments": list(self.needs.arguments),
        }

    def findings(self) -> list[dict[str, Any]]:
        """Return as rows what a person has to look at."""
        rest = [finding for finding in self.needs.findings if finding.support is not Support.YES]
        return [{"script": str(self.path), **_row(finding)} for finding in rest]

    def fixed_targets(self) -> list[dict[str, Any]]:
        """Return as rows the targets that the script names itself, whatever its arguments say."""
        return [
            {"script": str(self.path), "line": each.line, "what": each.what, "fixed_target": each.target}
            for each in self.needs.targets
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        found = {
            name: [_row(finding) for finding in self.needs.of(support)]
            for name, support in (
                ("supported", Support.YES),
                ("needs_a_word", Support.WORD),
                ("out_of_reach", Support.NO),
            )
        }
        return {
            "script": str(self.path),
            "verdict": str(self.verdict),
            **found,
            "arguments": list(self.needs.arguments),
            "contexts": list(self.needs.contexts),
            "fixed_targets": [
                {"line": each.line, "what": each.what, "target": each.target} for each in self.needs.targets
            ],
        }


def inventory(paths: Sequence[str | Path]) -> list[ScriptReport]:
    """Read scripts without running them, and return what each needs.

    Args:
        paths: scripts, or folders of which all scripts are read, at any depth.

    Raises:
        OptionError: a path does not exist, or a folder holds no script.
    """
    files = [file for path in paths for file in _scripts(Path(path))]
    return [_report(file) for file in dict.fromkeys(files)]


def _scripts(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    suffixes = {".py", *_OTHER_LANGUAGES}
    found = sorted(file for file in path.rglob("*") if file.suffix in suffixes and file.is_file())
    if not found:
        what = "holds no script" if path.is_dir() else "does not exist"
        raise OptionError(f"{str(path)!r} {what}. Nothing was read. Name a script, or a folder of scripts.")
    yield from found


def _report(path: Path) -> ScriptReport:
    other = _OTHER_LANGUAGES.get(path.suffix)
    if other is not None:
        return ScriptReport(path, ScriptNeeds((ScriptFinding(1, Support.NO, "the script", other),)))
    beside = {file.stem for file in path.parent.glob("*.py")} | {
        each.name for each in path.parent.iterdir() if each.is_dir()
    }
    return ScriptReport(path, read_script(path.read_text(encoding="utf-8", errors="replace"), beside))


def _row(finding: ScriptFinding) -> dict[str, Any]:
    return {"line": finding.line, "verdict": str(finding.support), "what": finding.what, "note": finding.note}

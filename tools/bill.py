"""Write a bill of materials: what is installed beside this project, as a CycloneDX document.

    $ python -m tools.bill > build/sbom.json

It has name, version, licence and package URL of each distribution. It has no hashes: what is installed is unpacked, and
the hash of the archive that it came from is not kept. docs/security.md says how to install by hash.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import Distribution, distributions
from typing import Any

_PROJECT = "airflow-provider-bookmarks"


def bill() -> dict[str, Any]:
    """Return the document; the same environment makes the same one."""
    found = {_name(each): each for each in distributions()}
    parts = [_component(name, found[name]) for name in sorted(found) if name != _PROJECT]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**_component(_PROJECT, found[_PROJECT]), "type": "application"}},
        "components": parts,
    }


def _name(found: Distribution) -> str:
    return re.sub(r"[-_.]+", "-", found.metadata["Name"]).lower()


def _component(name: str, found: Distribution) -> dict[str, Any]:
    purl = f"pkg:pypi/{name}@{found.version}"
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": found.version,
        "purl": purl,
    }
    expression, text = map(found.metadata.json.get, ("license_expression", "license"))
    if expression:
        component["licenses"] = [{"expression": expression}]
    elif isinstance(text, str) and "\n" not in text:  # some have the whole text there
        component["licenses"] = [{"license": {"name": text}}]
    return component


if __name__ == "__main__":
    json.dump(bill(), sys.stdout, indent=2)
    sys.stdout.write("\n")

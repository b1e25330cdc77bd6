"""The OpenAPI document of the app: `python -m airflow_bookmarks.plugin.openapi > docs/openapi.json`.

The app itself does not serve it.
"""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from typing import Any


def openapi_document() -> dict[str, Any]:
    """Return the document, with the paths as they are under Airflow's address."""
    from airflow_bookmarks.plugin.app import create_bookmarks_app
    from airflow_bookmarks.plugin.bundle import URL_PREFIX

    document = create_bookmarks_app().openapi()
    return {**document, "servers": [{"url": URL_PREFIX}]}


def main() -> None:
    """Print the document."""
    with redirect_stdout(sys.stderr):  # where Airflow logs to, such as that the page is not built
        document = openapi_document()
    json.dump(document, sys.stdout, indent=2, sort_keys=True)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()

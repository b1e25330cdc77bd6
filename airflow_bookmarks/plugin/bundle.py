"""The built page: where it lies in the package, and its addresses in the API server."""

from __future__ import annotations

from pathlib import Path

URL_PREFIX = "/bookmarks"
STATIC = "/static"
# What `make page` builds from www/src. A checkout in which nobody has built it has the routes, and no page.
BUNDLE = Path(__file__).parent / "www" / "dist" / "main.js"

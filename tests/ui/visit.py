"""A visit: one person at the page, in a browser of their own, and what that browser noticed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect

from tests.ui.server import Server, password_of

_WWW = Path(__file__).parents[2] / "airflow_bookmarks" / "plugin" / "www"
AXE = _WWW / "node_modules" / "axe-core" / "axe.min.js"
HOW_TO_AXE = f"{AXE} is missing: run `npm ci` in {_WWW}"
_RULES_OF_OURS = "[data-testid=bookmarks], [role=dialog]"
_GRAVE = ("serious", "critical")
# What the browser itself says of an answer that is no success; which ones are, each test says.
_FAILED = re.compile(r"Failed to load resource: the server responded with a status of (\d+)")

_WIDER = """() => {
    let wider = 0;
    for (let each = document.querySelector("[data-testid=bookmarks]"); each; each = each.parentElement) {
        wider = Math.max(wider, each.scrollWidth - each.clientWidth);
    }
    return wider;
}"""

# Of those that end: Airflow has some that never do.
_ANIMATIONS = """() => Promise.all(
    document.getAnimations()
        .filter((each) => Number.isFinite(each.effect.getComputedTiming().endTime))
        .map((each) => each.finished.catch(() => null))
)"""

Scheme = Literal["light", "dark"]
PATIENCE_MS = 180_000  # a machine that does ten other things at once is slow to load and to paint


@dataclass
class Visit:
    """Somebody who looks at the page.

    `expected` are the statuses of refusals that this visit is about: what the browser logs of them is no fault.
    """

    server: Server
    page: Page
    expected: set[int] = field(default_factory=set)
    foreign: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def open(self, path: str = "plugin/bookmarks", **asked: Any) -> Page:
        """Go to an address of the server, and wait until the page is there."""
        query = f"?{urlencode(asked)}" if asked else ""
        self.page.goto(f"{self.server.url}{path}{query}")
        # Its box alone is there before: the page is shown from its second mount on.
        expect(self.page.locator("[data-testid=bookmarks] > *").first).to_be_visible()
        self.settle()
        return self.page

    def settle(self) -> None:
        """Wait until nothing is being loaded."""
        expect(self.page.locator("[data-testid=bookmarks] .chakra-skeleton")).to_have_count(0)

    def problems(self) -> list[str]:
        """Return what the browser noticed that should not be: requests that left the site, errors in its console."""
        return [f"a request left the site: {url}" for url in self.foreign] + [
            text for text in self.said if not self._is_expected(text)
        ]

    def _is_expected(self, text: str) -> bool:
        found = _FAILED.match(text)
        return found is not None and int(found[1]) in self.expected

    def scrolls_sideways(self) -> int:
        """Return by how many pixels the page, or what Airflow has around it, is wider than there is room for."""
        return int(self.page.evaluate(_WIDER))

    def barriers(self) -> list[str]:
        """Return what axe finds serious or critical in the page's own part, dialogs included."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE.read_text())
        # A dialog that is fading in has less contrast than the one that is there.
        self.page.evaluate(_ANIMATIONS)
        found = self.page.evaluate(
            "(parts) => axe.run({include: [...document.querySelectorAll(parts)]}, {resultTypes: ['violations']})",
            _RULES_OF_OURS,
        )
        return [
            f"{each['id']} ({each['impact']}): {each['help']}: {[node['html'][:200] for node in each['nodes'][:3]]}"
            for each in found["violations"]
            if each["impact"] in _GRAVE
        ]


def visit(
    browser: Browser,
    server: Server,
    user: str | None,
    *,
    width: int = 1280,
    height: int = 900,
    scheme: Scheme = "light",
    has_touch: bool = False,
) -> Visit:
    """Let somebody come, logged in by a cookie as the login page sets it (None: nobody is)."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,
        has_touch=has_touch,
        locale="en-GB",
        timezone_id="UTC",
    )
    # Airflow keeps the choice of each person in the browser; who has made none gets what their system prefers.
    if user is not None:
        _log_in(context, server, user)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    come = Visit(server, page)
    page.on("request", lambda request: _note_request(come, request))
    page.on("console", lambda message: _note_message(come, message))
    page.on("pageerror", lambda error: come.said.append(f"uncaught: {error}"))
    return come


def _log_in(context: BrowserContext, server: Server, user: str) -> None:
    context.add_cookies([{"name": "_token", "value": server.token(user), "url": server.url}])


def log_in_by_page(come: Visit, user: str) -> None:
    """Fill in Airflow's login page."""
    page = come.page
    page.get_by_label("Username").fill(user)
    page.get_by_label("Password").fill(password_of(user))
    page.get_by_role("button", name="Sign in").click()


def _note_request(come: Visit, request: Request) -> None:
    origin = "/".join(come.server.url.split("/")[:3])
    if not request.url.removeprefix("blob:").startswith((f"{origin}/", "data:")):
        come.foreign.append(request.url)


def _note_message(come: Visit, message: ConsoleMessage) -> None:
    if message.type == "error":
        come.said.append(message.text)

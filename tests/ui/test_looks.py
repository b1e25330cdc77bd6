"""How the page looks and can be used: light and dark, narrow, by keyboard, and read out."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.ui import world as past
from tests.ui.conftest import Visitors
from tests.ui.places import BUILD, PLACES, Place
from tests.ui.visit import Scheme

# each looks at every view in a browser
pytestmark = [pytest.mark.thorough, pytest.mark.airflow, pytest.mark.slow, pytest.mark.xdist_group("page")]

_MOST_TABS = 80
# Whatever way a colour is written, a pixel of it has three numbers.
_SHADE = """() => {
    const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    for (let each = document.querySelector("[data-testid=bookmarks]"); each; each = each.parentElement) {
        paint.fillStyle = getComputedStyle(each).backgroundColor;
        paint.fillRect(0, 0, 1, 1);
        const [shade, , , isThere] = paint.getImageData(0, 0, 1, 1).data;
        if (isThere) return shade;
    }
}"""

# As a button that had the focus goes when the answer takes its place.
_FOCUS_WHAT_GOES = """(dialog) => {
    const button = dialog.appendChild(document.createElement("button"));
    button.focus();
    button.remove();
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_keeps_anybody_out(visitors: Visitors, axe: None, scheme: Scheme) -> None:
    come = visitors(scheme=scheme)
    come.expected.add(404)  # of the job that there is not
    found: dict[str, list[str]] = {}

    for place in PLACES:
        page = place.go(come)
        found[place.name] = come.barriers()
        page.screenshot(path=BUILD / f"{place.name}-{scheme}.png")

    assert {name: barriers for name, barriers in found.items() if barriers} == {}


def test_dark_is_dark_and_light_is_light(visitors: Visitors) -> None:
    schemes: tuple[Scheme, ...] = ("light", "dark")

    shades = {scheme: _shade(visitors(scheme=scheme).open()) for scheme in schemes}

    assert shades["dark"] < 80 < 180 < shades["light"]


def _shade(page: Page) -> int:
    """Return how light the ground of the page is, 0 to 255."""
    return int(page.evaluate(_SHADE))


def test_narrow_page_scrolls_down_and_never_sideways(visitors: Visitors) -> None:
    come = visitors(width=360)
    come.expected.add(404)
    wider: dict[str, int] = {}

    # Around a tab Airflow's own pages are wider than that.
    for place in (place for place in PLACES if place.path == Place.path):
        page = place.go(come)
        wider[place.name] = come.scrolls_sideways()
        page.screenshot(path=BUILD / f"{place.name}-narrow.png")

    assert {name: pixels for name, pixels in wider.items() if pixels} == {}


def test_job_and_dialog_are_reached_by_keyboard_alone_and_the_way_back_too(visitors: Visitors) -> None:
    page = visitors().open(search="trials.keys")
    expect(page.get_by_role("link", name="trials.keys", exact=True)).to_be_visible()
    page.keyboard.press("/")

    _tab_to(page, "trials.keys")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="trials.keys")).to_be_visible()

    _tab_to(page, "Reset")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("Based on version")).to_be_visible()
    assert page.evaluate("document.activeElement.closest('[role=dialog]') !== null")

    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("button", name="Reset", exact=True)).to_be_focused()


def test_dialog_without_a_field_to_begin_with_takes_the_focus_and_keeps_it(visitors: Visitors) -> None:
    page = visitors().open(job="trials.keys")
    page.get_by_role("button", name="Delete", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(":focus")).to_have_count(1)

    dialog.evaluate(_FOCUS_WHAT_GOES)

    expect(dialog.locator(":focus")).to_have_count(1)


def _tab_to(page: Page, text: str) -> None:
    """Press the tab key until what says `text` has the focus, visibly."""
    for _ in range(_MOST_TABS):
        page.keyboard.press("Tab")
        here = page.locator(":focus")
        if here.count() and here.inner_text().strip() == text:
            outline = page.evaluate(
                "(({outlineStyle, boxShadow}) => outlineStyle !== 'none' || boxShadow !== 'none')"
                "(getComputedStyle(document.activeElement))"
            )
            assert outline, f"nobody sees that {text!r} has the focus"
            return
    raise AssertionError(f"{text!r} is not reached by {_MOST_TABS} presses of the tab key")


@pytest.mark.parametrize("job", [past.CLEAN, past.RAW])
def test_picture_of_runs_has_words_for_who_does_not_see_it(visitors: Visitors, job: str) -> None:
    page = visitors().open(search=job)

    expect(page.get_by_role("img", name="10 runs, the last read").first).to_be_visible()

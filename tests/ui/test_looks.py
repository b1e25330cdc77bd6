"""How the page looks and can be used: light and dark, narrow, by keyboard, and read out."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.ui import world as past
from tests.ui.conftest import Visitors
from tests.ui.places import BUILD, PLACES, Place
from tests.ui.server import Server
from tests.ui.visit import Scheme, visit

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


# The contrast of what is drawn with what it is drawn on, by WCAG 2.2, and where it is too low; colours as painted.
_TOO_FAINT = """(part) => {
    const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const painted = (color, ground) => {
        for (const each of [ground, color].filter(Boolean)) {
            paint.fillStyle = each;
            paint.fillRect(0, 0, 1, 1);
        }
        return [...paint.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const light = (color) => {
        const [red, green, blue] = color.map((part) => {
            const share = part / 255;
            return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const groundOf = (element) => {
        for (let each = element; each; each = each.parentElement) {
            const ground = getComputedStyle(each).backgroundColor;
            if (!/, 0\\)$|\\/ 0\\)$|transparent/.test(ground)) return ground;
        }
        return "white";
    };
    const contrast = (one, other) => {
        const [dark, bright] = [light(one), light(other)].sort((a, b) => a - b);
        return (bright + 0.05) / (dark + 0.05);
    };
    const shapes = [...document.querySelectorAll(part)];
    const ratios = shapes.map((shape) => {
        const { stroke } = getComputedStyle(shape);
        const ground = groundOf(shape.closest("svg"));
        return [contrast(painted(stroke, ground), painted(ground)), stroke, ground];
    });
    return { shapes: shapes.length, faint: ratios.filter(([ratio]) => ratio < 3) };
}"""

_FITS_INTO_ITS_LIST = """(tab) => {
    const [own, all] = [tab, tab.parentElement].map((each) => each.getBoundingClientRect());
    return all.left <= own.left && own.right <= all.right + 1;
}"""

_MOVES = """() => document.querySelector("[data-testid=bookmarks]").getAnimations({ subtree: true }).length"""

_DIRECTION = """(element) => [element.closest("[lang]").lang, element.closest("[dir]").dir]"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_keeps_anybody_out(visitors: Visitors, axe: None, scheme: Scheme) -> None:
    come = visitors(scheme=scheme)
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_drawn_stands_out_from_what_it_is_drawn_on(visitors: Visitors, scheme: Scheme) -> None:
    come = visitors(scheme=scheme)
    drawn = {
        "[data-look] > rect:first-child": {},
        "[data-look] > rect:nth-child(1)": {"job": past.RAW, "tab": "runs"},
        "[data-mark] > *, [data-grid]": {"job": past.CLEAN, "tab": "charts"},
    }
    for part, asked in drawn.items():
        page = come.open(**asked)
        expect(page.locator(part).first).to_be_attached()

        found = page.evaluate(_TOO_FAINT, part)

        assert found["shapes"] > 10
        assert found["faint"] == [], part


def test_phone_shows_the_name_of_a_job_while_the_rest_of_its_row_scrolls(visitors: Visitors) -> None:
    come = visitors(width=400)
    page = come.open()
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name=past.CLEAN, exact=True))
    name, runs = row.get_by_role("link", name=past.CLEAN, exact=True), row.get_by_role("img")
    runs.evaluate("(each) => each.scrollIntoView({ inline: 'end', block: 'center' })")

    for each in (name, runs):
        expect(each).to_be_in_viewport(ratio=0.9)
    # Nothing that scrolls below it hides it.
    assert name.evaluate(
        "(link) => { const { x, y } = link.getBoundingClientRect();"
        " return link.contains(document.elementFromPoint(x + 2, y + 2)); }"
    )
    assert come.scrolls_sideways() == 0


def test_phone_shows_the_number_of_a_run_while_the_rest_of_its_row_scrolls(visitors: Visitors) -> None:
    come = visitors(width=400)
    page = come.open(job=past.RAW, tab="runs")
    row = page.get_by_role("table", name="Runs of the job").get_by_role("row").nth(1)
    row.get_by_role("link", name="Log of run 25").evaluate(
        "(each) => each.scrollIntoView({ inline: 'end', block: 'center' })"
    )

    expect(row.get_by_role("button", name="25")).to_be_in_viewport(ratio=0.9)
    expect(row.get_by_role("link", name="Log of run 25")).to_be_in_viewport()
    assert come.scrolls_sideways() == 0


def test_job_opens_at_its_top_and_its_tabs_at_the_open_one(visitors: Visitors) -> None:
    page = visitors(width=400).open(job=past.PROTECTED, tab="graph")
    expect(page.get_by_role("heading", name="Requests for approval")).to_be_visible()
    tab = page.get_by_role("tab", name="Graph")
    expect(tab).to_have_attribute("aria-selected", "true")

    expect(page.get_by_role("heading", name=past.PROTECTED)).to_be_in_viewport(ratio=1)
    assert tab.evaluate(_FITS_INTO_ITS_LIST)


def test_timeline_opens_at_its_newest_run_where_there_is_no_room_for_all(visitors: Visitors) -> None:
    page = visitors(width=400).open(job=past.RAW, tab="runs")
    newest = page.get_by_test_id("timeline").locator("[data-run]").first

    newest.scroll_into_view_if_needed()

    expect(newest.locator("[data-look=published]").first).to_be_in_viewport(ratio=0.9)
    expect(newest.get_by_text("25", exact=True)).to_be_in_viewport(ratio=0.9)


def test_title_names_the_job_and_is_what_it_was_when_one_leaves(visitors: Visitors) -> None:
    page = visitors().open(search=past.CLEAN)
    expect(page).to_have_title("Bookmarks")

    page.get_by_role("link", name=past.CLEAN, exact=True).click()
    expect(page).to_have_title(f"{past.CLEAN} \u2013 Bookmarks")

    page.go_back()
    expect(page).to_have_title("Bookmarks")
    page.get_by_test_id("nav-home-link").click()
    expect(page).not_to_have_title(re.compile("Bookmarks"))


def test_page_is_english_from_left_to_right_whatever_airflow_is(visitors: Visitors) -> None:
    page = visitors().open(job=past.CLEAN, tab="runs")
    page.evaluate("Object.assign(document.documentElement, { lang: 'ar', dir: 'rtl' })")

    page.get_by_test_id("bookmarks").get_by_role("button", name="IDLE", exact=True).focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    means = page.get_by_role("tooltip").filter(has_text="everything committed is published")
    assert means.evaluate(_DIRECTION) == ["en", "ltr"]
    page.keyboard.press("Escape")
    assert page.get_by_role("heading", name=past.CLEAN).evaluate(_DIRECTION) == ["en", "ltr"]
    page.locator("[data-run]").first.click()
    assert page.get_by_role("dialog").evaluate(_DIRECTION) == ["en", "ltr"]
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Reset", exact=True).click()
    assert page.get_by_role("dialog").evaluate(_DIRECTION) == ["en", "ltr"]


def test_nothing_moves_for_who_wants_no_motion(visitors: Visitors) -> None:
    come = visitors()
    page = come.page
    held: list[Route] = []
    page.route("**/bookmarks/api/v1/jobs?*", lambda route: held.append(route))
    page.goto(f"{come.server.url}plugin/bookmarks")
    expect(page.locator("[data-testid=bookmarks] .chakra-skeleton").first).to_be_visible()
    assert page.evaluate(_MOVES) > 0

    page.emulate_media(reduced_motion="reduce")

    assert page.evaluate(_MOVES) == 0
    for route in held:
        route.continue_()


def test_badge_explains_itself_to_the_keyboard_and_escape_closes_that(visitors: Visitors) -> None:
    page = visitors().open(search=past.FAILED)
    badge = page.get_by_role("row").get_by_role("button", name="IDLE", exact=True)

    for _ in range(_MOST_TABS):
        page.keyboard.press("Tab")
        if badge.evaluate("(each) => each === document.activeElement"):
            break

    means = page.get_by_role("tooltip").filter(has_text="everything committed is published")
    expect(means).to_be_visible()
    expect(badge).to_have_accessible_description("everything committed is published")
    page.keyboard.press("Escape")
    expect(means).to_have_count(0)
    expect(badge).to_be_focused()


def test_badge_explains_itself_to_a_finger(browser: Browser, server: Server) -> None:
    come = visit(browser, server, "admin", has_touch=True)
    page = come.open(search=past.FAILED)

    page.get_by_role("row").get_by_role("button", name="IDLE", exact=True).tap()

    means = page.get_by_role("tooltip").filter(has_text="everything committed is published")
    expect(means).to_be_visible()
    page.get_by_role("heading", level=1).tap()
    expect(means).to_have_count(0)
    assert come.problems() == []
    page.context.close()

"""The page in a real browser: chromium, headless, driven by Playwright. Screenshots are kept in build/screenshots."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import REPOSITORY
from tests.dashboard import made
from windrow.dashboard.history import Reader
from windrow.dashboard.serve import Bound, bind, started

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

SIZES = ((400, 860), (1600, 1000))
CHARTS = ("rates", "work", "results", "recall", "durations", "phases", "bytes")
SHOTS = Path(os.environ.get("WINDROW_SCREENSHOTS", REPOSITORY / "build" / "screenshots"))
SCRIPT = "</script><script>window.hit=1</script><img src=x onerror='window.hit=1'><b>b</b>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = os.environ.get("WINDROW_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("there is no chromium: install it, or set WINDROW_CHROMIUM")
    with playwright.sync_playwright() as driver:
        made_here = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield made_here
        made_here.close()


@contextmanager
def opened(
    browser: Browser, folder: Path, size: tuple[int, int] = SIZES[1], dark: bool = False, bound: Bound | None = None
) -> Iterator[Page]:
    """The page of a folder; it may say nothing on the console, ask nobody else, and fail at nothing."""
    bound = bound or bind("127.0.0.1", 0)
    wrong: list[str] = []
    with started(bound, Reader(str(folder))) as url:
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
        )
        page = context.new_page()
        page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("requestfailed", lambda request: wrong.append(request.url) if "/live" not in request.url else None)
        page.on("request", lambda request: wrong.append(request.url) if "127.0.0.1" not in request.url else None)
        page.goto(url, wait_until="load")
        yield page
        assert page.evaluate("window.hit") is None
        context.close()
    assert wrong == []


def drawn(page: Page, batch: int) -> None:
    for _ in range(300):  # polled from here: the page forbids what waiting inside of it would take
        if int(page.evaluate("Number(document.body.dataset.drawn ?? -1)")) >= batch:
            return
        page.wait_for_timeout(100)
    pytest.fail(f"batch {batch} was not drawn within 30 s")


def shoot(page: Page, name: str) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.wait_for_timeout(300)
    page.screenshot(path=SHOTS / f"{name}.png", full_page=True)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: str(size[0]))
def test_every_chart_of_a_finished_run_has_data(browser: Browser, runs: Path, size: tuple[int, int]) -> None:
    with opened(browser, runs / "throttled", size) as page:
        drawn(page, made.BATCHES)
        assert page.inner_text("#state") == "Finished"
        for name in CHARTS:
            traces = page.evaluate(
                f"document.querySelector('#chart-{name} .plot').data.map(t => t.y.filter(v => v !== null).length)"
            )
            assert traces, name
            assert min(traces) > 0, (name, traces)
            assert page.locator(f"#chart-{name} .plot svg.main-svg").count() > 0
        assert page.locator("figure.lag").count() == 6
        assert all(int(n) > 0 for n in page.eval_on_selector_all("figure.lag", "all => all.map(e => e.dataset.points)"))
        assert page.locator("#funnel li").count() >= 8
        assert page.locator(".chain").count() == 3
        assert page.locator("#stream-table tbody tr").count() == 3
        assert page.locator("#advice tbody tr").count() == 3
        assert "results repaired" in page.inner_text("#ledger")
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
        shoot(page, f"finished-{size[0]}")


def test_dark_colours_and_the_keyboard(browser: Browser, runs: Path) -> None:
    with opened(browser, runs / "throttled", dark=True) as page:
        drawn(page, made.BATCHES)
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        shoot(page, "finished-dark")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        seen = set()
        for _ in range(40):
            page.keyboard.press("Tab")
            seen.add(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
        assert {"theme", "A", "funnel-driver", "funnel-span", "SUMMARY"} <= seen
        page.focus("#theme")
        page.keyboard.press("Enter")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != ground
        page.focus("#chart-rates summary")
        page.keyboard.press("Enter")
        page.wait_for_selector("#chart-rates tbody tr")
        assert page.locator("#chart-rates tbody tr").count() > 5
        page.select_option("#funnel-driver", "c")
        assert "rows in" in page.inner_text("#funnel")


def test_everything_has_a_name_for_those_who_listen(browser: Browser, runs: Path) -> None:
    with opened(browser, runs / "throttled") as page:
        drawn(page, made.BATCHES)
        unnamed = page.evaluate(
            """[...document.querySelectorAll('[role=img], button, select, a, section, nav, table')].filter(e =>
               !(e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.textContent.trim()
                 || e.labels?.length)).filter(e => !e.closest('[hidden]') && !e.closest('details:not([open])'))
               .map(e => e.outerHTML.slice(0, 80))"""
        )
        assert unnamed == []
        labels = page.eval_on_selector_all(
            ".plot", "all => all.filter(e => !e.closest('[hidden]')).map(e => e.ariaLabel)"
        )
        assert all(label and label.endswith("The numbers are below.") for label in labels)
        levels = page.eval_on_selector_all("h1, h2, h3", "all => all.map(e => Number(e.tagName[1]))")
        assert levels[0] == 1
        assert all(two - one <= 1 for one, two in pairwise(levels))
        assert page.evaluate("document.getElementById('announce').getAttribute('aria-live')") == "polite"
        assert "Finished" in page.inner_text("#announce")


def test_the_funnel_names_the_condition_that_kills(browser: Browser, runs: Path) -> None:
    for size in SIZES:
        with opened(browser, runs / "far", size) as page:
            drawn(page, made.BATCHES)
            assert "1000000000" in page.inner_text("#verdict")
            assert "1000000000" in page.inner_text("#funnel li.killer")
            assert "1000000000" in page.inner_text("#conditions tr.killer")
            shoot(page, f"nothing-joins-{size[0]}")


@pytest.mark.usefixtures("interpreted")
def test_a_live_run_is_drawn_as_it_goes(browser: Browser, tmp_path: Path) -> None:
    go_on = threading.Semaphore(0)

    def each(number: int) -> None:
        assert go_on.acquire(timeout=60)

    runner = threading.Thread(target=made.run, args=(made.THREE, tmp_path), kwargs={"batches": 9, "each": each})
    with opened(browser, tmp_path) as page:
        page.wait_for_selector("#empty:not([hidden])")
        runner.start()
        for number in range(3):
            drawn(page, number)
            go_on.release()
        drawn(page, 3)
        assert page.inner_text("#state") == "Live"
        points = page.evaluate("document.querySelector('#chart-rates .plot').data[0].y.length")
        shoot(page, "live-1600")
        go_on.release(20)
        drawn(page, 9)
        assert page.inner_text("#state") == "Finished"
        assert page.evaluate("document.querySelector('#chart-rates .plot').data[0].y.length") > points
        runner.join()


def test_text_from_data_stays_text(browser: Browser, runs: Path, tmp_path: Path) -> None:
    events = made.copied(runs / "throttled", tmp_path / "<b>run<script>")
    for file in events.iterdir():
        values = json.loads(file.read_bytes())
        file.unlink()
        file.write_text(json.dumps(poisoned(values)))
    with opened(browser, tmp_path / "<b>run<script>") as page:
        drawn(page, made.BATCHES)
        assert page.inner_text("h1") == "<b>run<script>"
        assert SCRIPT in page.inner_text("#stream-table")
        assert SCRIPT in page.inner_text("#plan-picture")
        assert page.locator("main b:text-is('b')").count() == 0
        assert page.locator("img[src=x]").count() == 0
        assert SCRIPT in page.evaluate("document.querySelector('#chart-rates .legendtext').textContent")


def poisoned(values: Any) -> Any:
    """An event in which the stream `a` and the conditions are scripts."""
    if isinstance(values, dict):
        return {SCRIPT if name == "a" else name: poisoned(value) for name, value in values.items()}
    if isinstance(values, list):
        return [poisoned(value) for value in values]
    if isinstance(values, str) and values.startswith("abs("):
        return values + SCRIPT
    return SCRIPT if values == "a" else values


def test_a_page_with_a_token_opens_by_the_address_that_is_printed(browser: Browser, runs: Path) -> None:
    bound = bind("127.0.0.1", 0)
    bound = Bound(bound.listening, replace(bound.rules, token="t0ken-t0ken-t0ken"))
    with opened(browser, runs / "near", bound=bound) as page:
        drawn(page, made.BATCHES)
        assert "token" not in page.url


def test_torn_files_do_not_hide_the_rest(browser: Browser, runs: Path, tmp_path: Path) -> None:
    events = made.copied(runs / "near", tmp_path / "run")
    for file in sorted(events.iterdir())[5:15]:
        file.write_bytes(file.read_bytes()[:999])
    with opened(browser, tmp_path / "run") as page:
        drawn(page, made.BATCHES)
        assert "10 of those read are damaged" in page.inner_text("footer")

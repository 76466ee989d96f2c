"""The report in a real browser: no errors, sorting, filtering, runs, colours, phones, paper."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace

import pytest

import browser
from perdure.report.page import write_page
from report_samples import NASTY, cells, findings, record, records

PHONE = 390
"""Pixels across."""


@pytest.fixture(scope="module")
def runs():
    return records()


@pytest.fixture(scope="module")
def path(runs, tmp_path_factory):
    place = tmp_path_factory.mktemp("report") / "a report.html"
    write_page(place, runs, findings(runs), "A report")
    return place


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    program = browser.find()
    if program is None:
        pytest.skip("no Chromium is installed; on Debian: apt-get install chromium")
    try:
        started = browser.Browser(program, tmp_path_factory.mktemp("profile"))
    except AssertionError as error:
        pytest.skip(f"{program} does not start: {error}")
    with started:
        yield started


@pytest.fixture
def page(chromium, path):
    chromium.resize(1280, 900)
    chromium.media()
    chromium.open(path)
    yield chromium
    assert chromium.complaints() == []


def column(page, table, number):
    """Texts of a column in the lines that are seen."""
    return page.run(
        f"[...document.querySelectorAll('{table} tbody tr')].filter((row) => row.getClientRects().length)"
        f".map((row) => row.cells[{number}].innerText.trim())"
    )


def numbers(texts):
    return [float(text.split()[0].replace("\u2212", "-")) for text in texts]


def click(page, selector):
    page.run(f"document.querySelector({json.dumps(selector)}).click()")


def head(page, table, name):
    page.run(
        f"[...document.querySelectorAll('{table} thead .sorter')]"
        f".find((button) => button.firstChild.textContent === {json.dumps(name)}).click()"
    )


def tip(page):
    return page.run("document.getElementById('tip').hidden ? null : document.getElementById('tip').innerText")


def settle(page):
    """Let the browser draw, and report that it has scrolled."""
    page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))")


def rectangle(page, selector):
    find = f"document.querySelector({json.dumps(selector)})"
    page.run(f"{find}.scrollIntoView({{ behavior: 'instant', block: 'center' }})")
    settle(page)
    box = page.run(f"{find}.getBoundingClientRect().toJSON()")
    return [box[side] for side in ("left", "top", "width", "height")]


def test_opens_from_a_file_without_errors_and_asks_for_nothing_else(page, path):
    assert page.complaints() == []
    elsewhere = [address for address in page.requests() if not address.startswith("data:image/")]
    assert elsewhere == [path.as_uri()]
    assert page.run("document.querySelectorAll('main script').length") == 0
    assert not [event for event in page.events if event.get("method") == "Page.javascriptDialogOpening"]
    unnamed = page.run(
        "[...document.querySelectorAll('button, select, input, a')]"
        ".filter((one) => !(one.textContent.trim() || one.ariaLabel)).map((one) => one.outerHTML)"
    )
    assert unnamed == []
    assert page.run("document.title") == "A report"


@pytest.mark.parametrize("width", [PHONE, 1300])
def test_drawings_are_images_of_their_size_and_do_nothing(page, width):
    page.resize(width, 900)
    page.run("Promise.all([...document.images].map((one) => one.decode()))")
    sizes = page.run(
        "[...document.images].map((one) => [one.naturalWidth, one.naturalHeight, one.width, one.height])"
    )
    assert len(sizes) == 3
    for natural_width, natural_height, shown_width, shown_height in sizes:
        assert shown_width / shown_height == pytest.approx(natural_width / natural_height, rel=0.02)
        assert 200 <= shown_width <= max(width, 34 * 16)
    assert page.run("document.documentElement.scrollWidth") <= width
    assert page.run("document.title") == "A report"  # no script of a drawing wrote there
    assert not [event for event in page.events if event.get("method") == "Page.javascriptDialogOpening"]
    assert page.run("getComputedStyle(document.querySelector('h1')).fill") == "rgb(0, 0, 0)"
    assert page.run("document.querySelectorAll('#runs-table').length") == 1


def test_a_column_sorts_both_ways(page, runs):
    wanted = sorted((round(run.final, 2) for run in runs), reverse=True)
    head(page, "#runs-table", "final")
    assert numbers(column(page, "#runs-table", 5)) == pytest.approx(wanted, abs=0.011)
    assert page.run("document.querySelector('#runs-table [aria-sort]').ariaSort") == "descending"
    head(page, "#runs-table", "final")
    assert numbers(column(page, "#runs-table", 5)) == pytest.approx(wanted[::-1], abs=0.011)
    head(page, "#runs-table", "seed")
    seeds = numbers(column(page, "#runs-table", 3))
    assert seeds == sorted(seeds, reverse=True)
    assert page.run("document.querySelectorAll('#runs-table [aria-sort]').length") == 1


def test_what_has_no_number_sorts_last_either_way(page):
    table = ".full table"
    for _ in range(2):
        head(page, table, "difference")
        texts = column(page, table, 4)
        assert texts[-2:] == ["\u2013", "\u2013"]
        assert "\u2013" not in texts[:-2]


def test_filters_by_words_and_by_choices(page, runs):
    def write(text):
        page.run(
            "(() => { const field = document.querySelector('#runs input[type=search]');"
            f"field.value = {json.dumps(text)}; field.dispatchEvent(new Event('input')); }})()"
        )

    write("MASKING copy")
    assert set(column(page, "#runs-table", 2)) == {"masking+si"}
    assert page.run("document.querySelector('#runs .count').innerText") == f"3 of {len(runs)} rows"
    write(runs[0].hash)  # the table shows only the first digits
    assert column(page, "#runs-table", 0) == [runs[0].hash[:8]]
    write("")
    choose = (
        "(value) => { const select = document.querySelectorAll('#runs .controls select')[1];"
        "select.value = value; select.dispatchEvent(new Event('change')); }"
    )
    page.run(f"({choose})({json.dumps(NASTY[0])})")
    assert column(page, "#runs-table", 2) == [NASTY[0]]
    page.run(f"({choose})('')")
    assert len(column(page, "#runs-table", 2)) == len(runs)
    write("no such words")
    assert column(page, "#runs-table", 2) == []


def matrix(page):
    """What the heat map shows, from its tips."""
    tips = page.run(
        "[...document.querySelectorAll('#detail .heat tbody td')].map((cell) => cell.dataset.tip)"
    )
    values = [float(re.search(r": (\d+\.\d+) %$", text)[1]) for text in tips]
    return [values[start : start + 5] for start in range(0, len(values), 5)]


def test_a_chosen_run_shows_its_matrix_curves_settings_and_command(page, runs):
    run = next(one for one in runs if one.method == "si" and one.seed == 2)
    page.run(f"[...document.querySelectorAll('#runs-table a')].find((a) => a.title === '{run.hash}').click()")
    assert matrix(page) == [pytest.approx(row, abs=0.00501) for row in run.accuracy]
    shown = page.run("document.getElementById('detail').innerText")
    assert "permuted-copy, si, seed 2" in shown
    assert "perdure run permuted-copy si --seed 2" in shown
    assert "learning_rate" in shown
    assert page.run("document.querySelector('#runs-table [aria-current]').cells[0].innerText") == run.hash[:8]
    lines: list[int] = []
    for _ in range(100):  # charts are drawn in the browser's own time
        lines = page.run(
            "[...document.querySelectorAll('#detail svg.chart')]"
            ".map((one) => one.querySelectorAll('.series').length)"
        )
        if all(lines):
            break
        time.sleep(0.1)
    assert lines == [6, 4, 1]  # five tasks and their mean; task, orthogonal, si, validation; accuracy
    before = matrix(page)
    page.run(
        "[...document.querySelectorAll('.chooser button')].find((one) => one.innerText === 'Next').click()"
    )
    assert matrix(page) != before


def test_a_link_to_a_run_opens_it(page, runs):
    hashes = cells(runs)[0].hashes
    click(page, ".full .how a[href]")
    settle(page)
    run = next(one for one in runs if one.hash == hashes[0])
    assert matrix(page) == [pytest.approx(row, abs=0.00501) for row in run.accuracy]


def test_an_address_with_a_run_opens_it(chromium, path, runs):
    chromium.open(path, f"#run-{runs[4].hash}")
    assert matrix(chromium) == [pytest.approx(row, abs=0.00501) for row in runs[4].accuracy]


def test_nasty_runs_are_shown_as_text(page, runs):
    for run in runs[-len(NASTY) :]:
        page.run(
            f"[...document.querySelectorAll('#runs-table a')].find((a) => a.title === '{run.hash}').click()"
        )
        assert run.method in page.run("document.querySelector('#detail h3').textContent")
    assert page.run("document.querySelectorAll('#detail img, main script').length") == 0


def test_values_appear_under_the_pointer_and_by_arrow_keys(page, runs):
    usual = [one for one in runs if one.benchmark == "permuted-copy"]  # what was run most comes first
    first = min(usual, key=lambda one: (one.method, one.seed))
    left, top, width, height = rectangle(page, "#detail .heat tbody td")
    page.point(left + width / 2, top + height / 2)
    assert f"{first.accuracy[0][0]:.2f} %" in tip(page)
    left, top, width, height = rectangle(page, "#detail svg.chart")
    page.point(left + width - 21, top + height / 2)
    assert "After task 5" in tip(page)
    assert "task 1" in tip(page)
    page.run("document.querySelector('#detail .heat').focus()")
    settle(page)
    page.press("ArrowDown")
    assert f"After task 2, on task 1 ({first.tasks[0]}): {first.accuracy[1][0]:.2f} %" == tip(page)
    page.run("document.querySelectorAll('#detail svg.chart')[1].focus()")
    settle(page)
    page.press("End")
    assert "task 5, iteration 2000" in tip(page)
    page.press("Escape")
    assert tip(page) is None


def test_a_curve_of_single_points_is_seen(chromium, tmp_path):
    """With one validation in each task no two points are joined, so each is a dot."""
    for checks, dots in ((1, 5), (4, 0)):
        page = tmp_path / f"{checks}.html"
        made = record("si", 0, checks=checks)
        write_page(page, [made], [], "Few")
        chromium.open(page, f"#run-{made.hash}")
        accuracy = "[...document.querySelectorAll('#detail .chart')].at(-1).querySelectorAll('circle').length"
        assert chromium.run(accuracy) == dots


def test_many_tasks_have_a_cell_each(chromium, tmp_path, runs):
    count = 20
    matrix = [[float((7 * row + 3 * column) % 101) for column in range(count)] for row in range(count)]
    many = replace(runs[0], accuracy=matrix, f1=matrix, tasks=[f"language {task}" for task in range(count)])
    write_page(tmp_path / "many.html", [many], [], "Many")
    for width in (1280, PHONE):
        chromium.resize(width, 844, mobile=width == PHONE)
        chromium.open(tmp_path / "many.html")
        smallest = chromium.run(
            "Math.min(...[...document.querySelectorAll('.heat tbody td')]"
            ".map((cell) => Math.min(cell.clientWidth, cell.clientHeight)))"
        )
        assert smallest >= 8
        assert chromium.run("document.querySelectorAll('.heat tbody td').length") == 2 * count * count
        assert chromium.run("document.documentElement.scrollWidth") <= width
        assert chromium.complaints() == []


def ground(page):
    """How bright the page is, from 0 to 255."""
    colour = page.run("getComputedStyle(document.body).backgroundColor")
    return sum(int(part) for part in re.findall(r"\d+", colour)[:3]) / 3


def test_light_and_dark_can_be_chosen_and_are_remembered(page):
    assert ground(page) > 200
    click(page, "#theme-toggle")
    assert ground(page) < 60
    click(page, "#theme-toggle")
    assert ground(page) > 200
    theme = "document.documentElement.dataset.theme"
    choose = f"{theme} === 'dark' || document.getElementById('theme-toggle').click()"
    assert page.outlives(choose, f"{theme} === 'dark'")
    assert ground(page) < 60
    page.media(prefers_color_scheme="dark")
    assert page.outlives("localStorage.clear()", f"{theme} === undefined")
    assert ground(page) < 60
    assert page.run("document.getElementById('theme-toggle').innerText") == "Light"


def test_colours_work_where_nothing_can_be_stored(page, path):
    forbid = (
        "Object.defineProperty(window, 'localStorage',"
        "{ get() { throw new DOMException('no', 'SecurityError'); } })"
    )
    added = page.send("Page.addScriptToEvaluateOnNewDocument", source=forbid)["identifier"]
    try:
        page.open(path)
        click(page, "#theme-toggle")
        assert ground(page) < 60
        assert page.complaints() == []
    finally:
        page.send("Page.removeScriptToEvaluateOnNewDocument", identifier=added)


@pytest.mark.parametrize("width", [PHONE, 320, 768, 1024])
def test_no_sideways_scrolling(page, path, width):
    page.resize(width, 844, mobile=width < 700)
    page.open(path)
    assert page.run("document.documentElement.scrollWidth") <= width
    page.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    if width < 1024:
        assert page.run("document.getElementById('contents').getClientRects().length") == 0
        click(page, "#contents-toggle")
        assert page.run("document.getElementById('contents').getClientRects().length") == 1
    for number in (0, 13, 15):  # a usual run and two with long or strange names
        page.run(f"document.querySelectorAll('#runs-table tbody tr')[{number}].click()")
        settle(page)
        assert page.run("document.documentElement.scrollWidth") <= width


OVERLAPS = """[...document.querySelectorAll('.cards tbody tr')].filter((row) => {
  const boxes = [...row.cells].map((cell) => cell.getBoundingClientRect()).filter((box) => box.height);
  return boxes.some((a, place) => boxes.slice(place + 1).some((b) =>
    a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1));
}).length"""


@pytest.mark.parametrize("width", [PHONE, 320])
def test_parts_of_a_card_do_not_lie_upon_each_other(page, path, width):
    page.resize(width, 844, mobile=True)
    page.open(path)
    page.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert page.run("document.querySelectorAll('.cards tbody tr').length") > 10
    assert page.run(OVERLAPS) == 0


def test_paper_is_light_and_has_no_controls(page):
    click(page, "#theme-toggle")
    page.media("print")
    assert ground(page) == 255
    for gone in ("#theme-toggle", "#contents", ".controls", ".chooser", ".copy"):
        assert page.run(
            f"[...document.querySelectorAll('{gone}')].every((one) => !one.getClientRects().length)"
        )
    assert page.run("document.querySelector('#runs-table tbody tr:last-child').getClientRects().length") == 1
    assert page.send("Page.printToPDF", printBackground=True)["data"].startswith("JVBERi0")  # %PDF-
    page.media()
    page.run("localStorage.clear()")


def test_tables_are_there_without_scripts(page, path, runs):
    page.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.open(path)
        shape = page.send("DOM.getDocument", depth=1)["root"]["nodeId"]
        found = page.send("DOM.querySelectorAll", nodeId=shape, selector="#runs-table tbody tr")["nodeIds"]
        assert len(found) == len(runs)
        (button,) = page.send("DOM.querySelectorAll", nodeId=shape, selector="#theme-toggle[hidden]")[
            "nodeIds"
        ]
        assert button
        assert not page.send("DOM.querySelectorAll", nodeId=shape, selector=".sorter, .controls")["nodeIds"]
    finally:
        page.send("Emulation.setScriptExecutionDisabled", value=False)
        page.open(path)


def test_a_browser_that_cannot_unpack_runs_says_so_and_shows_the_rest(chromium, path):
    absent = chromium.send(
        "Page.addScriptToEvaluateOnNewDocument", source="delete globalThis.DecompressionStream"
    )["identifier"]
    try:
        chromium.open(path)
    finally:
        chromium.send("Page.removeScriptToEvaluateOnNewDocument", identifier=absent)
    assert "perdure show RUN" in chromium.run("document.getElementById('detail').innerText")
    assert chromium.run("document.querySelectorAll('#runs-table tbody tr').length") > 0
    assert chromium.complaints() == []

"""The report: all records and findings as one HTML file that needs no network and no other files."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from perdure.analysis.statistics import AGREES, MARGIN, NOT_DECIDED
from perdure.compare.question import Comparison
from perdure.errors import PerdureError
from perdure.files import write
from perdure.paper.findings import Findings
from perdure.report.compared import comparison_section, no_result
from perdure.report.numbers import duration, plain
from perdure.report.palette import Colour, method_colours
from perdure.report.runs import comparisons as means_by_method
from perdure.report.runs import run_data, run_line
from perdure.report.search_views import search_section
from perdure.report.sections import Identities, items
from perdure.search.state import Search
from perdure.storage.record import Record

STYLES = ("page.css", "parts.css", "print.css")
EARLY = "theme.js"
"""Executed before the page is drawn."""

SCRIPTS = ("elements.js", "tables.js", "charts.js", "run.js", "page.js")
"""In order of their dependencies."""


def write_page(
    path: Path,
    records: Sequence[Record],
    findings: Sequence[Findings],
    title: str,
    *,
    searches: Sequence[Search] = (),
    comparisons: Sequence[Comparison] = (),
    runs: Path | None = None,
) -> None:
    """Write the report; an existing file is replaced atomically. Comparisons are read from `runs`."""
    content = page(records, findings, title, searches, comparisons, runs).encode()
    try:
        write(path, content)
    except PerdureError as error:
        reason = getattr(error.__cause__, "strerror", None) or error
        raise PerdureError(
            f"Cannot write the report '{path}' ({reason}); choose another path with --out FILE."
        ) from error


def page(
    records: Sequence[Record],
    findings: Sequence[Findings],
    title: str,
    searches: Sequence[Search] = (),
    comparisons: Sequence[Comparison] = (),
    runs: Path | None = None,
) -> str:
    """The report as text. Equal records, findings, searches and comparisons give equal text."""
    counts = Counter(record.benchmark for record in records)  # the benchmark with most runs comes first
    records = sorted(
        records, key=lambda one: (-counts[one.benchmark], one.benchmark, one.method, one.seed, one.hash)
    )
    searches = sorted(searches, key=lambda one: (one.design.question, one.design.method, one.id))
    methods = sorted({*(r.method for r in records), *(search.design.method for search in searches)})
    early, script = _script([EARLY]), _script(SCRIPTS)
    return (
        _environment()
        .from_string(_asset("page.html"))
        .render(
            title=title,
            style=Markup("\n".join(_asset(name) for name in STYLES)) + _colours(method_colours(methods)),
            script=script,
            early=early,
            policy=_policy(early, script),
            tiles=_tiles(records, findings),
            benchmarks=sorted({record.benchmark for record in records}),
            comparisons=means_by_method(records),
            scores=list(dict.fromkeys(record.score for record in records)),
            versions=_counts([record.versions for record in records]),
            machines=_counts([record.machine for record in records]),
            margin=f"{MARGIN:g}",
            version=version("perdure"),
            **_views(records, findings, methods, searches, comparisons, runs),
        )
    )


def _views(
    records: Sequence[Record],
    findings: Sequence[Findings],
    methods: Sequence[str],
    searches: Sequence[Search],
    comparisons: Sequence[Comparison],
    runs: Path | None,
) -> dict[str, Any]:
    """What the page shows of each run, item, search and comparison, by its name in the template.

    They refer to each other: each has an id on the page, and each method its style.
    """
    identities = Identities()
    named = {record.hash: (identities.new("run", record.hash), record) for record in records}
    views, half = items(findings, named, identities)
    styles = {name: f"method-{number}" for number, name in enumerate(methods)}
    sections = {search.id: identities.new("search", search.id) for search in searches}
    compared = [
        comparison_section(one, runs, identities.new("comparison", one.id), styles, sections)
        for one in comparisons
        if runs is not None
    ]
    return {
        "data": packed({"runs": {target: run_data(record) for target, record in named.values()}}),
        "items": views,
        "half": plain(half).removesuffix(".00"),
        "runs": [run_line(target, record) for target, record in named.values()],
        "methods": styles,
        "searches": [search_section(one, sections[one.id], styles) for one in searches if one.trials],
        "compared": [one for one in compared if one is not None],
        "unanswered": [
            no_result(one, runs)
            for one, section in zip(comparisons, compared, strict=False)
            if section is None and runs is not None
        ],
    }


def packed(data: Any) -> str:
    """JSON, compressed, in letters that mean nothing inside <script>: most of a page is such data."""
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _environment() -> Environment:
    return Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(_asset),
    )


def _asset(name: str) -> str:
    return (files("perdure.report") / "assets" / name).read_text(encoding="utf-8")


def _script(names: Sequence[str]) -> Markup:
    return Markup("\n".join(["'use strict';", *(_asset(name) for name in names)]))


def _policy(*scripts: str) -> str:
    """Allow the browser to run only our own scripts, and to load nothing at all."""
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:"


def _colours(colours: Mapping[str, Colour]) -> Markup:
    """A class for each method, by number, since names may contain anything."""
    return Markup("\n").join(
        Markup(".method-{} {{ --method: light-dark({}, {}); }}").format(number, light, dark)
        for number, (light, dark) in enumerate(colours.values())
    )


def _tiles(records: Sequence[Record], findings: Sequence[Findings]) -> list[tuple[str, str]]:
    """A few key figures for the top of the page: number and caption."""
    # Items share runs; a number that occurs in several items is counted once.
    judged = {
        (cell.hashes or (one.name, cell.row), cell.column): cell.verdict
        for one in findings
        for cell in one.cells
        if cell.verdict
    }
    tiles = []
    if findings:
        tiles.append(
            (str(len(findings)), "item of the paper" if len(findings) == 1 else "items of the paper")
        )
    if judged:
        agreeing = sum(verdict == AGREES for verdict in judged.values())
        decided = sum(verdict != NOT_DECIDED for verdict in judged.values())
        tiles.append((f"{agreeing} / {decided}", "decided numbers agree with the published ones"))
        tiles.append((f"{len(judged) - decided}", "not decided with so few seeds"))
    tiles.append((str(len(records)), "run" if len(records) == 1 else "runs"))
    tiles.append((str(len({record.method for record in records})), "methods"))
    tiles.append((duration(sum(record.seconds for record in records)), "of computing time"))
    return tiles


def _counts(facts: Sequence[Mapping[str, str]]) -> list[tuple[str, int]]:
    """Each distinct combination of facts as text, and how many runs have it."""
    words = Counter(", ".join(f"{name} {text}" for name, text in one.items()) for one in facts)
    return words.most_common()

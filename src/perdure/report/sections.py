"""The items of the paper in the report, as plain text and small drawings for the template."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from perdure.analysis.statistics import AS_PUBLISHED, NOT_DECIDED, REVERSED
from perdure.paper.findings import (
    CONTRADICTED,
    SUPPORTED,
    WEAKER,
    Conclusion,
    Findings,
    Pair,
    TableCell,
    in_paper,
)
from perdure.paper.pairs import order_summary
from perdure.report.charts import axis_of, differences_strip, reach, strip
from perdure.report.drawings import Image, image
from perdure.report.numbers import (
    difference_text,
    duration,
    plain,
    points_with_error,
    probability,
    with_error,
    would_decide,
    would_decide_claim,
)
from perdure.storage.record import Record

SIGNS = {"agrees": "✓", "higher": "▲", "lower": "▼", "reversed": "⇅", "undecided": "?", "other": "•"}
"""Symbols before verdicts, since colour alone is not enough."""

ORDERS = {AS_PUBLISHED: "agrees", REVERSED: "reversed", NOT_DECIDED: "undecided"}
"""Kinds of the verdicts on the order of two methods."""


NONE = "\u2013"
"""Placeholder for a missing number."""


@dataclass(frozen=True)
class Verdict:
    """A verdict: its kind, which determines its style, and its short and full text."""

    kind: str
    text: str
    full: str = ""

    @property
    def sign(self) -> str:
        """The symbol of its kind."""
        return SIGNS[self.kind]


@dataclass(frozen=True)
class Link:
    """A run behind a number."""

    target: str
    text: str
    title: str


@dataclass(frozen=True)
class Line:
    """One line of an item's table."""

    row: str
    method: str
    """The method of its runs; empty if none of them is on the page, or if they have several methods."""
    column: str
    ours: str
    ours_value: float | None
    n: int
    interval: str
    published: str
    published_value: float | None
    difference: str
    difference_value: float | None
    verdict: Verdict | None
    strip: Markup
    command: str
    runs: list[Link]


@dataclass(frozen=True)
class PairLine:
    """Two methods: our difference, the published one, and whether their order is the same."""

    first: str
    second: str
    ours: str
    ours_value: float
    p: str
    p_value: float | None
    p_signs: str
    published: str
    published_value: float | None
    order: Verdict | None


@dataclass(frozen=True)
class Picture:
    """A drawing of an item; without an image if it could not be read."""

    title: str
    caption: str
    image: Image | None


@dataclass(frozen=True)
class ItemSection:
    """One table or figure of the paper."""

    id: str
    title: str
    source: str
    place: str
    """The source in short: Table 1."""
    in_paper: bool
    about: str
    scale: str
    differs: str
    command: str
    time: str
    lines: list[Line]
    pairs: list[PairLine]
    order: str
    """How many pairs are in the published order, in words."""
    conclusions: list[tuple[str, str, Verdict]]
    """What the paper finds, what ours show, and the verdict."""
    pictures: list[Picture]
    verdicts: list[Verdict]
    unpublished: int
    measured: bool
    """Whether its lines have more than one measure."""
    published: bool
    """Whether the paper has any of its numbers."""
    found: str
    """How many findings of the paper ours support, contradict or do not decide."""
    differences: Markup
    typical: str
    """The median of the absolute differences."""
    typical_value: float | None
    agreeing: float | None
    """The share of verdicts that agree."""


class Identities:
    """Ids for a page, each used once."""

    def __init__(self) -> None:
        """Start with no ids in use."""
        self.taken: set[str] = set()

    def new(self, start: str, text: str) -> str:
        """A new id of plain letters that begins with `start` and resembles a text."""
        base = f"{start}-{re.sub(r'[^a-z0-9]+', '-', text.lower())[:40].strip('-')}".strip("-")
        name, number = base, 1
        while name in self.taken:
            number += 1
            name = f"{base}-{number}"
        self.taken.add(name)
        return name


def items(
    findings: Sequence[Findings], records: Mapping[str, tuple[str, Record]], identities: Identities
) -> tuple[list[ItemSection], float]:
    """A section for each finding, and the limit of the axis of all differences.

    `records` maps the hash of each run on the page to its id and record.
    """
    half = reach([gap for one in findings for gap in _gaps(one)])
    return [_item(one, records, identities, half) for one in findings], half


def difference(cell: TableCell) -> float | None:
    """Ours minus published, if there are both."""
    if cell.ours is None or cell.published is None:
        return None
    return cell.ours.mean - cell.published.mean


def _gaps(findings: Findings) -> list[float]:
    """All differences, if they are meaningful."""
    if findings.scale == "smoke":
        return []
    return [gap for cell in findings.cells if (gap := difference(cell)) is not None]


def verdict_of(cell: TableCell) -> Verdict | None:
    """A verdict by its first word, and for undecided ones how many seeds would decide."""
    text = cell.verdict
    if not text:
        return None
    if text == NOT_DECIDED:
        return Verdict("undecided", text, f"{text}: {would_decide(cell.needed)}")
    first = text.split()[0].lower().rstrip(":,;")
    if first in SIGNS:
        return Verdict(first, first, text)
    return Verdict("other", text, text)


def _item(
    findings: Findings,
    records: Mapping[str, tuple[str, Record]],
    identities: Identities,
    half: float,
) -> ItemSection:
    identity = identities.new("item", findings.name)
    gaps = _gaps(findings)
    verdicts = [verdict for cell in findings.cells if (verdict := verdict_of(cell)) is not None]
    typical = statistics.median(abs(gap) for gap in gaps) if gaps else None
    agreeing = sum(verdict.kind == "agrees" for verdict in verdicts)
    return ItemSection(
        id=identity,
        title=findings.title,
        source=findings.source,
        place=re.split(r"\s*[(,]", findings.source)[0],
        in_paper=in_paper(findings.source),
        about=findings.about,
        scale=findings.scale,
        differs=findings.differs,
        command=findings.command,
        time=duration(findings.seconds) if findings.seconds > 0 else "",
        lines=_lines(findings, records),
        pairs=[_pair_line(pair) for pair in findings.pairs],
        order=order_summary(findings.pairs),
        conclusions=[_conclusion(each) for each in findings.conclusions],
        pictures=_pictures(findings),
        verdicts=_counted(verdicts),
        unpublished=sum(cell.published is None for cell in findings.cells),
        published=any(cell.published for cell in findings.cells),
        found=_found(findings.conclusions),
        measured=len({cell.column for cell in findings.cells}) > 1,
        differences=differences_strip(gaps, half) if gaps else Markup(""),
        typical=NONE if typical is None else plain(typical),
        typical_value=typical,
        agreeing=agreeing / len(verdicts) if verdicts else None,
    )


def _conclusion(found: Conclusion) -> tuple[str, str, Verdict]:
    kind = {SUPPORTED: "agrees", CONTRADICTED: "reversed", WEAKER: "other"}.get(found.verdict, "undecided")
    full = (
        f"{found.verdict}: {would_decide_claim(found.contrast.n, found.needed)}"
        if found.verdict == NOT_DECIDED
        else found.verdict
    )
    return found.paper, found.ours, Verdict(kind, found.verdict, full)


def _found(conclusions: Sequence[Conclusion]) -> str:
    """How many findings of the paper ours support, contradict or do not decide."""
    counts = Counter(each.verdict for each in conclusions if each.of_the_paper)
    kinds = (SUPPORTED, WEAKER, CONTRADICTED, NOT_DECIDED)
    return ", ".join(f"{counts[kind]} {kind}" for kind in kinds if counts[kind])


def _counted(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """How many verdicts there are of each kind, as verdicts again: '9 agree'."""
    counts = Counter(verdict.kind for verdict in verdicts)
    return [Verdict(kind, f"{counts[kind]} {_plural(kind, counts[kind])}") for kind in SIGNS if counts[kind]]


def _plural(kind: str, count: int) -> str:
    if kind == "agrees":
        return "agree" if count > 1 else kind
    return NOT_DECIDED if kind == "undecided" else kind


def _lines(findings: Findings, records: Mapping[str, tuple[str, Record]]) -> list[Line]:
    axes = {
        column: axis_of([cell for cell in findings.cells if cell.column == column])
        for column in {cell.column for cell in findings.cells}
    }
    lines = []
    for cell in findings.cells:
        gap, ours, published = difference(cell), cell.ours, cell.published
        interval = ""
        if ours is not None and ours.low is not None and ours.high is not None:
            interval = f"95 % interval of the mean: {plain(ours.low)} to {plain(ours.high)}"
        lines.append(
            Line(
                row=cell.row + (f" ({cell.remark})" if cell.remark else ""),
                method=_method(cell, records),
                column=cell.column,
                ours=NONE if ours is None else with_error(ours.mean, ours.sem),
                ours_value=None if ours is None else ours.mean,
                n=0 if ours is None else ours.n,
                interval=interval,
                published=NONE if published is None else with_error(published.mean, published.sem),
                published_value=None if published is None else published.mean,
                difference=NONE
                if ours is None or published is None
                else difference_text(ours.mean, published.mean),
                difference_value=gap,
                verdict=verdict_of(cell),
                strip=strip(cell, axes[cell.column]),
                command=cell.command,
                runs=_links(cell, records),
            )
        )
    return lines


def _pair_line(pair: Pair) -> PairLine:
    published = pair.published
    return PairLine(
        first=pair.first,
        second=pair.second,
        ours=points_with_error(pair.ours.mean, pair.ours.sem),
        ours_value=pair.ours.mean,
        p=NONE if pair.p is None else probability(pair.p),
        p_value=pair.p,
        p_signs="" if pair.p_signs is None else probability(pair.p_signs),
        published=NONE if published is None else points_with_error(published.mean, published.sem),
        published_value=None if published is None else published.mean,
        order=Verdict(ORDERS.get(pair.order, "other"), pair.order) if pair.order else None,
    )


def _method(cell: TableCell, records: Mapping[str, tuple[str, Record]]) -> str:
    methods = {records[name][1].method for name in cell.hashes if name in records}
    return methods.pop() if len(methods) == 1 else ""


def _links(cell: TableCell, records: Mapping[str, tuple[str, Record]]) -> list[Link]:
    """The runs behind a cell that are on this page, by seed."""
    found = sorted(
        (records[name] for name in cell.hashes if name in records), key=lambda one: (one[1].seed, one[1].hash)
    )
    return [
        Link(target, str(record.seed), f"{record.benchmark}, {record.method}, seed {record.seed}")
        for target, record in found
    ]


def _pictures(findings: Findings) -> list[Picture]:
    return [Picture(drawing.title, drawing.caption, image(drawing.svg)) for drawing in findings.drawings]

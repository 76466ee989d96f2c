"""What the site adds when it is built: equations without scripts, settings from code, results from records.

A page asks with a comment: `<!-- settings si -->` becomes a table of the method's options, and
`<!-- results si -->` one of its numbers in `results/` beside the published ones. Nothing is typed by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent.parent / "results"
BENCHMARK, SCALE = "permuted-copy", "laptop"
"""Where a method's default settings are taken from."""
SHOWN = ("table-1", "smnist", "smnist-rehearsal", "audioset", "pos", "dsa", "plasticity")
"""Items of the paper, and beyond it, that compare methods."""
EVERYWHERE = "penalties.orthogonal"
"""Options that every method has."""


def settings_table(method: str) -> str:
    """A method's own options, with their defaults and meanings."""
    from perdure.config import preset, sections
    from perdure.options import option_text

    chosen = preset(BENCHMARK, method, SCALE, {})
    rows = [
        (
            f"`{section}.{name}`",
            option_text(chosen.get(f"{section}.{name}", field.default)),
            field.description,
        )
        for section, kind in sections(BENCHMARK, method).items()
        if section.startswith(("weights", "penalties", "rehearsal")) and section != EVERYWHERE
        for name, field in kind.model_fields.items()
    ]
    if not rows:
        return "It has no settings of its own.\n"
    said = f"Its settings, with their defaults on `{BENCHMARK}` at scale `{SCALE}`:"
    return f"{said}\n\n{_table(('option', 'default', 'meaning'), rows)}"


def results_table(method: str, results: Path = RESULTS) -> str:
    """Our numbers as far as records are committed, and those of the paper."""
    rows = list(_compared(method, results))
    if not rows:
        return "No result of it is committed yet.\n"
    head = ("what was learnt", "", "ours: mean ± SEM (n)", "published (n)")
    return _table(head, rows)


def _compared(method: str, results: Path) -> Iterator[tuple[str, ...]]:
    from perdure.paper.committed import kept_findings
    from perdure.paper.item import items
    from perdure.report.tables import number_text

    found = kept_findings(results)
    yield from _searched(method, results)
    for name in SHOWN:
        item = items()[name]
        for row in [*getattr(item, "rows", ()), *(point.row for point in getattr(item, "points", ()))]:
            if row.setting.method != method:
                continue
            what = f"{row.setting.benchmark}: {row.setting.label}"
            cells = [
                (one.scale, cell)
                for one in found
                if one.name == name
                for cell in one.cells
                if cell.row == row.setting.label
            ]
            for scale, cell in cells:
                ours = f"{number_text(cell.ours)}, {scale}"
                yield what, cell.column, ours, number_text(cell.published)
            if not cells:
                for column, published in row.published.items():
                    yield what, column, "not run yet", number_text(published)


def _searched(method: str, results: Path) -> Iterator[tuple[str, ...]]:
    """Numbers of settings that a search has chosen, which no table of the paper has."""
    from perdure.analysis.statistics import number
    from perdure.methods import BEYOND
    from perdure.report.searches import chosen_records
    from perdure.report.tables import number_text
    from perdure.search.state import all_searches

    if method not in {each.name for each in BEYOND}:
        return
    for search in all_searches(results)[0]:
        records = chosen_records(search, results) if search.design.method == method else []
        if records:
            ours = f"{number_text(number([record.final for record in records]))}, {search.design.scale}"
            yield f"{search.design.question}: chosen by search {search.id}", "final", ours, ""


def _table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(str(c or "").replace("|", "\\|") for c in row) + " |\n" for row in lines)


def filled(text: str) -> str:
    """A page with its tables."""
    text = re.sub(r"<!-- settings (\S+) -->", lambda found: settings_table(found[1]), text)
    return re.sub(r"<!-- results (\S+) -->", lambda found: results_table(found[1]), text)


def with_one_title(text: str) -> str:
    """A page whose further titles are sections, so that the table of contents has one entry for it."""
    first, *others = re.split(r"^(?=# )", text, flags=re.MULTILINE)[1:]
    return first + "".join(re.sub(r"^(#+ )", r"#\1", part, flags=re.MULTILINE) for part in others)


def mathml(latex: str, *, block: bool) -> str:
    """An equation as MathML, which browsers draw without a script or a network."""
    from docutils.utils.math.latex2mathml import tex2mathml

    made: str = tex2mathml(latex, as_block=block)
    return made


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    from docutils import nodes

    def fill(_: Any, name: str, source: list[str]) -> None:
        source[0] = with_one_title(source[0]) if name == "results" else filled(source[0])

    def inline(writer: Any, node: Any) -> None:
        writer.body.append(mathml(node.astext(), block=False))
        raise nodes.SkipNode

    def display(writer: Any, node: Any) -> None:
        writer.body.append(
            f'<div class="math" style="overflow-x: auto">{mathml(node.astext(), block=True)}</div>'
        )
        raise nodes.SkipNode

    app.connect("source-read", fill)
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True}

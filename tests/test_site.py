"""The documentation: every local link leads somewhere, every page is in the table of contents."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import replace
from pathlib import Path

import pytest

from perdure.files import write_json
from perdure.methods import METHODS
from perdure.paper.item import items
from report_samples import record as sample

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
LINK = re.compile(r"(?<!\!)\[[^\]\n]+\]\(([^)\s]+)\)|!\[[^\]\n]*\]\(([^)\s]+)\)")


def links(path: Path) -> list[str]:
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`\n]*`", "", text)
    return [one or other for one, other in LINK.findall(text)]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_local_links_lead_somewhere(path):
    broken = []
    for link in links(path):
        place, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        target = (path.parent / place).resolve() if place else path
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


def anchors(path: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def test_links_are_found():
    assert "choosing.md" in links(DOCS / "quickstart.md")
    assert sum(len(links(path)) for path in PAGES) > 30


def listed(path: Path) -> set[Path]:
    """The pages that a page's tables of contents name, and those that these name."""
    found: set[Path] = set()
    for tree in re.findall(r"```\{toctree\}(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL):
        for line in tree.splitlines():
            if line.strip() and not line.startswith(":"):
                place = re.sub(r"^.* <(.*)>$", r"\1", line.strip())  # a page may have a shorter title there
                page = path.parent / f"{place}.md"
                found |= {page.resolve()} | listed(page)
    return found


def test_every_page_is_in_the_table_of_contents():
    pages = {page.resolve() for page in DOCS.rglob("*.md")} - {(DOCS / "index.md").resolve()}
    left_out = pages - listed(DOCS / "index.md")
    assert {page.name for page in left_out} <= {"log.md"}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_a_page_with_its_command(method):
    own, shared = DOCS / "methods" / f"{method.replace('+', '-')}.md", DOCS / "methods" / "beyond.md"
    text = (own if own.exists() else shared).read_text(encoding="utf-8")
    if own.exists():
        assert f"perdure run permuted-copy {method}" in text
        assert "$$" in text
    else:
        assert f"## `{method}`" in text


def loaded(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("method", METHODS)
def test_settings_and_results_of_a_method_are_not_typed_by_hand(method):
    own = DOCS / "methods" / f"{method.replace('+', '-')}.md"
    text = (own if own.exists() else DOCS / "methods" / "beyond.md").read_text(encoding="utf-8")
    assert f"<!-- settings {method} -->" in text
    assert f"<!-- results {method} -->" in text
    assert "±" not in text


def test_tables_of_a_method_come_from_code_and_records(tmp_path):
    pages = loaded(DOCS / "pages.py")
    settings = pages.settings_table("online-ewc")
    assert "| `penalties.online-ewc.strength` | 100.0 | lambda of the penalty" in settings
    assert "no settings of its own" in pages.settings_table("fine-tuning")
    none = pages.results_table("online-ewc", tmp_path)
    assert "| permuted-copy: Online EWC | final | not run yet | 98.66 ± 0.14 (10) |" in none
    item = items()["table-1"]
    setting = next(each for each in item.settings("laptop") if each.method == "online-ewc")
    config = setting.config("laptop", 0)
    accuracy = [*([99.9] * 5 for _ in range(4)), [97.5] * 5]
    record = replace(
        sample("online-ewc", 0, benchmark=setting.benchmark),
        **{"hash": config.hash, "config": config.json, "accuracy": accuracy, "final": 97.5, "during": 99.42},
    )
    write_json(tmp_path / record.hash / "record.json", record.json)
    some = pages.results_table("online-ewc", tmp_path)
    assert "| permuted-copy: Online EWC | final | 97.50 (1), laptop | 98.66 ± 0.14 (10) |" in some
    assert pages.filled("a <!-- settings si --> b").startswith("a Its settings")


def test_a_page_has_one_title():
    pages = loaded(DOCS / "pages.py")
    assert pages.with_one_title("# a\n## b\n# c\n## d\n") == "# a\n## b\n## c\n### d\n"
    assert pages.with_one_title("# a\n## b\n") == "# a\n## b\n"


def test_equations_need_no_script():
    pytest.importorskip("docutils", reason="docutils is not installed (extra docs)")
    pages = loaded(DOCS / "pages.py")
    found = [
        equation
        for path in (DOCS / "methods").glob("*.md")
        for equation in re.findall(r"\$\$(.+?)\$\$", path.read_text(encoding="utf-8"), re.DOTALL)
    ]
    assert len(found) >= len(METHODS)
    assert all(pages.mathml(equation, block=True).startswith("<math") for equation in found)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")
def test_the_site_builds_without_warnings(tmp_path):
    """Warnings of Sphinx about our pages are errors; deprecations inside its extensions are not ours."""
    for package in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(package, reason=f"{package} is not installed (extra docs)")
    from sphinx.cmd.build import build_main

    assert build_main(["-W", "-q", "-b", "html", str(DOCS), str(tmp_path / "html")]) == 0
    assert "ContinualLearner" in (tmp_path / "html" / "index.html").read_text(encoding="utf-8")
    page = (tmp_path / "html" / "methods" / "si.html").read_text(encoding="utf-8")
    assert "<math" in page
    assert "94.03 ± 0.24" in page

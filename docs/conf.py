"""The documentation site: `make docs` builds it into docs/_build/html, with warnings as errors."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for pages.py

project = "Perdure"
author = "The Perdure authors"
copyright = "2026, the Perdure authors. Apache-2.0"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.doctest", "pages"]
html_math_renderer = "mathml"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "figures", "log.md"]
html_theme = "furo"
html_title = "Perdure"
html_extra_path = ["report.html"]
html_show_sphinx = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
# Documents link to files of the repository; those are checked by tests/test_site.py, not by Sphinx.
suppress_warnings = ["myst.xref_missing"]

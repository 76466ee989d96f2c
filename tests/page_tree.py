"""A strict reader of pages for the tests of the report."""

from __future__ import annotations

import base64
import gzip
import json
import re
from html.parser import HTMLParser

VOID = {"meta", "input", "br", "img", "link", "hr"}


def data_of_runs(text):
    """What a page's script knows of each run, by the run's anchor."""
    letters = re.search(r'<script[^>]*\bid="data"[^>]*>\s*([A-Za-z0-9+/=]+)\s*</script>', text).group(1)
    return json.loads(gzip.decompress(base64.b64decode(letters)))["runs"]


class Tree(HTMLParser):
    """Reads a page strictly: every tag is closed in order; collects what the tests ask for."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.attributes, self.tags = [], [], [], []
        self.rows, self.headings = [], []
        self.cell = None
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attributes]
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.cell = ""
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> is in a wrong place"
        if tag in ("td", "th"):
            self.rows[-1].append(" ".join(self.cell.split()))
            self.cell = None

    def handle_data(self, data):
        if self.cell is not None:
            self.cell += data

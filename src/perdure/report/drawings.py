"""SVG text as an image in a page.

A browser only displays an image: it runs none of its scripts and loads nothing that it refers to, and the
styles and ids of the image do not affect the page.
"""

from __future__ import annotations

import base64
import re
import xml.etree.ElementTree as ElementTree
from typing import NamedTuple

SVG = "{http://www.w3.org/2000/svg}svg"
"""The root of a drawing; without its namespace browsers do not recognise it as an image."""


class Image(NamedTuple):
    """The content of <img>: the drawing as a data URI, and its size in CSS pixels."""

    source: str
    width: int
    height: int


def image(svg: str) -> Image | None:
    """The drawing as an image; None if it cannot be read."""
    try:
        if "<!ENTITY" in svg:  # a few of them can expand to gigabytes
            return None
        root = ElementTree.fromstring(svg)
    except (ElementTree.ParseError, ValueError):
        return None
    width, height = _extent(root)
    if root.tag != SVG or not (0 < width < 1e5 and 0 < height < 1e5):
        return None
    content = base64.b64encode(svg.encode()).decode()
    return Image(f"data:image/svg+xml;base64,{content}", round(width), round(height))


def _extent(root: ElementTree.Element) -> tuple[float, float]:
    """Width and height in pixels, from the view box or else from the attributes."""
    try:
        if box := root.get("viewBox"):
            width, height = [float(part) for part in re.split(r"[\s,]+", box.strip())][2:4]
        else:
            width, height = (float(re.sub(r"[a-z%]+$", "", root.get(n, "0"))) for n in ("width", "height"))
    except ValueError:
        return 0, 0
    # matplotlib uses points, 72 to the inch; CSS has 96 pixels to the inch.
    scale = 96 / 72 if root.get("width", "").endswith("pt") else 1
    return width * scale, height * scale

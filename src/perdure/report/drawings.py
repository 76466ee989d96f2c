"""SVG text made fit to stand inside a page: nothing that acts or loads, and no name that clashes."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from html import escape

SHAPES = ("path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "image", "text", "tspan")
PAINTS = ("linearGradient", "radialGradient", "stop", "marker", "pattern", "mask", "clipPath")
ELEMENTS = frozenset(["svg", "g", "defs", "use", "symbol", "title", "desc", *SHAPES, *PAINTS])
"""What may be drawn; scripts, styles, links, animations and foreign content are left out."""

ROUNDED = frozenset(["d", "points"])
"""Attributes whose many digits nobody sees."""

INHERITED = {"stroke-linejoin": "round", "stroke-linecap": "butt"}
"""What matplotlib says in a style sheet for all elements. Inside a page that would style the whole page."""

LINK = "{http://www.w3.org/1999/xlink}href"
PICTURE = re.compile(r"data:image/(png|jpeg);base64,[A-Za-z0-9+/=\s]*")
LOCAL = re.compile(r"""url\(\s*["']?#([^"')]+)["']?\s*\)""")
LONG = re.compile(r"-?\d*\.\d{3,}(e[-+]?\d+)?")


def embedded(svg: str, prefix: str, label: str) -> str:
    """The drawing as an inline <svg> whose ids begin with `prefix`; empty if it cannot be read.

    Only ids that something refers to are kept; references to anything outside the drawing are dropped.
    """
    try:
        if "<!ENTITY" in svg:
            return ""
        root = ElementTree.fromstring(svg)
    except ElementTree.ParseError:
        return ""
    if _name(root) != "svg":
        return ""
    wanted = set(_references(root))
    width, height = _extent(root)
    if width <= 0 or height <= 0:
        return ""
    attributes = {
        "class": "drawing",
        "role": "img",
        "aria-label": label,
        "viewBox": root.get("viewBox") or f"0 0 {width:g} {height:g}",
        "style": f"width:{width:.0f}px",
        **INHERITED,
    }
    seen: set[str] = set()
    inner = "".join(_written(child, prefix, wanted, seen) for child in root)
    return f"<svg{_tag(attributes)}>{inner}</svg>"


def _name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _extent(root: ElementTree.Element) -> tuple[float, float]:
    """Width and height in pixels, from the view box or else from the attributes."""
    try:
        if box := root.get("viewBox"):
            width, height = [float(part) for part in re.split(r"[\s,]+", box.strip())][2:4]
        else:
            width, height = (float(re.sub(r"[a-z%]+$", "", root.get(n, "0"))) for n in ("width", "height"))
    except ValueError:
        return 0, 0
    # matplotlib counts points, of which 72 make an inch; a page's inch has 96 pixels.
    scale = 96 / 72 if root.get("width", "").endswith("pt") else 1
    return width * scale, height * scale


def _references(root: ElementTree.Element) -> Iterator[str]:
    """Ids that some element of the drawing refers to."""
    for element in root.iter():
        for value in element.attrib.values():
            yield from LOCAL.findall(value)
            if value.startswith("#"):
                yield value[1:]


def _written(element: ElementTree.Element, prefix: str, wanted: set[str], seen: set[str]) -> str:
    name = _name(element)
    if name not in ELEMENTS:
        return ""
    attributes = {}
    for key, value in element.attrib.items():
        safe = _attribute(key, value, prefix)
        if safe is not None:
            attributes[safe[0]] = safe[1]
    identity = element.get("id")
    if identity in wanted and identity not in seen:
        seen.add(identity)
        attributes["id"] = prefix + identity
    inner = escape(element.text or "", quote=False) if name in ("text", "tspan", "title", "desc") else ""
    for child in element:
        inner += _written(child, prefix, wanted, seen)
        if name in ("text", "tspan"):
            inner += escape(child.tail or "", quote=False)
    return f"<{name}{_tag(attributes)}>{inner}</{name}>" if inner else f"<{name}{_tag(attributes)}/>"


def _attribute(key: str, value: str, prefix: str) -> tuple[str, str] | None:
    """The attribute as it may stand in the page, or None."""
    if key in (LINK, "href"):
        if value.startswith("#"):
            return "href", f"#{prefix}{value[1:]}"
        return ("href", value) if PICTURE.fullmatch(value) else None
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", key) or key in ("id", "class") or key.startswith("on"):
        return None
    if re.search(r"url\(|@import|expression\(|\\", LOCAL.sub("", value), re.IGNORECASE):
        return None
    value = LOCAL.sub(lambda found: f"url(#{prefix}{found[1]})", value)
    return key, LONG.sub(_shorter, value) if key in ROUNDED else value


def _shorter(found: re.Match[str]) -> str:
    number = float(found[0])
    return f"{number:.2f}" if abs(number) >= 10 else f"{number:.4g}"


def _tag(attributes: dict[str, str]) -> str:
    return "".join(f' {key}="{escape(" ".join(value.split()))}"' for key, value in attributes.items())

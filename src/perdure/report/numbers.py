"""Numbers for human readers: few digits, thin spaces, units."""

from __future__ import annotations

import math

MINUS = "\u2212"
SPACE = "\u202f"
"""Narrow and non-breaking."""

UNITS = ("B", "kB", "MB", "GB", "TB")


def plain(value: float) -> str:
    """Two decimals as in the paper; more digits for small numbers, none for large ones."""
    size = abs(value)
    if not math.isfinite(value):
        text = "not finite"
    elif size >= 10_000:
        text = whole(value)
    elif size >= 0.1 or size == 0:
        text = f"{value:.2f}"
    else:
        text = f"{value:.2g}"
    return text.replace("-", MINUS)


def points(value: float) -> str:
    """An accuracy or a difference of two: always two decimals, and no sign if these are zero."""
    text = f"{value:.2f}" if math.isfinite(value) else "not finite"
    return text.replace("-", "" if text == "-0.00" else MINUS)


def points_with_error(mean: float, sem: float | None) -> str:
    """Mean ± SEM of accuracies."""
    return points(mean) if sem is None else f"{points(mean)} ± {points(sem)}"


def probability(value: float) -> str:
    """A p-value: two decimals, one digit for small ones, and a bound for tiny ones."""
    if value < 1e-4:
        return "< 0.0001"
    return f"{value:.2f}" if value >= 0.01 else f"{value:.1g}"


def difference_text(ours: float, published: float) -> str:
    """Ours minus published, with its sign and the decimals of the published number."""
    gap = ours - published
    usual = 0.1 <= abs(published) < 10_000 or published == 0
    text = points(gap) if usual else plain(gap)
    return text if text.startswith(MINUS) or text == "0.00" else f"+{text}"


def whole(value: float) -> str:
    """A count, with its thousands separated."""
    return f"{value:,.0f}".replace(",", SPACE).replace("-", MINUS)


def with_error(mean: float, sem: float | None) -> str:
    """Mean ± SEM."""
    return plain(mean) if sem is None else f"{plain(mean)} ± {plain_error(mean, sem)}"


def plain_error(mean: float, sem: float) -> str:
    """A standard error with the decimals of its mean."""
    return f"{sem:.2f}" if 0.1 <= abs(mean) < 10_000 or mean == 0 else plain(sem)


def size(count: float) -> str:
    """Bytes with a unit."""
    unit = 0
    while count >= 1000 and unit < len(UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.0f}{SPACE}{UNITS[unit]}" if unit == 0 else f"{count:.3g}{SPACE}{UNITS[unit]}"


def duration(seconds: float) -> str:
    """Milliseconds, seconds, minutes or hours."""
    if seconds < 1:
        return f"{1000 * seconds:.0f}{SPACE}ms"
    if seconds < 1000:
        return f"{seconds:.1f}{SPACE}s" if seconds < 10 else f"{seconds:.0f}{SPACE}s"
    if seconds < 7200:
        return f"{seconds / 60:.0f}{SPACE}min"
    return f"{seconds / 3600:.1f}{SPACE}h"


def significant(value: float, digits: int = 4) -> float | None:
    """Rounded to some digits; None if not finite, since JSON cannot represent it."""
    return float(f"{value:.{digits}g}") if math.isfinite(value) else None


def would_decide_claim(n: int, needed: int | None) -> str:
    """How many seeds would decide an undecided finding, of which there are n so far."""
    from perdure.analysis.statistics import LEAST_SEEDS  # numpy takes a while to load

    return f"at least {LEAST_SEEDS} seeds are needed" if n < 2 else would_decide(needed)


def would_decide(needed: int | None) -> str:
    """How many seeds would decide an undecided comparison."""
    return "more seeds of ours alone would not suffice" if needed is None else f"{needed} seeds would suffice"

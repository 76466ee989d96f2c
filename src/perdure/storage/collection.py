"""records(folder): the records of all finished runs in a folder, as a list and as a data frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from perdure.errors import PerdureError, with_extra
from perdure.storage.record import Record
from perdure.storage.store import all_records

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMNS = ("hash", "benchmark", "method", "seed", "during", "final", "val_during", "val_final", "seconds")
"""Columns of a data frame that come first, from fields of a record."""
SHOWN = 4
"""Benchmarks with methods that the text of a collection names."""


class Records(Sequence[Record]):
    """Records in the order of their hashes; `warnings` describes those that could not be read."""

    def __init__(self, found: Sequence[Record], warnings: Sequence[str] = ()) -> None:
        """Store the records that were read, and warnings about those that were not."""
        self._found = list(found)
        self.warnings = list(warnings)

    def __repr__(self) -> str:
        """How many records of which benchmarks and methods."""
        names = sorted({f"{record.benchmark} {record.method}" for record in self._found})
        shown = ", ".join(names[:SHOWN]) + (f", and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
        return f"<{len(self)} record{'' if len(self) == 1 else 's'}{': ' if names else ''}{shown}>"

    def __len__(self) -> int:
        """The number of records."""
        return len(self._found)

    @overload
    def __getitem__(self, place: int) -> Record: ...

    @overload
    def __getitem__(self, place: slice) -> Records: ...

    def __getitem__(self, place: int | slice) -> Record | Records:
        """One record, or several."""
        return Records(self._found[place]) if isinstance(place, slice) else self._found[place]

    def __iter__(self) -> Iterator[Record]:
        """Iterate over the records."""
        return iter(self._found)

    def rows(self) -> list[dict[str, Any]]:
        """One flat mapping per record: results, numbers of parameters, and each option by its dotted name."""
        return [_row(record) for record in self]

    def to_frame(self) -> DataFrame:
        """The rows as a pandas.DataFrame; options that a run does not have are missing values."""
        try:
            import pandas
        except ImportError:
            raise PerdureError(
                f"A data frame needs pandas: {with_extra('frames')}; rows() gives the same without it."
            ) from None
        return pandas.DataFrame(self.rows(), columns=None if len(self) else list(COLUMNS))


def records(runs: Path | str = "runs") -> Records:
    """The records of all finished runs in a folder."""
    folder = Path(runs)
    if not folder.is_dir():
        raise PerdureError(f"'{folder}' is not a folder of runs; perdure.run creates one.")
    return Records(*all_records(folder))


def _row(record: Record) -> dict[str, Any]:
    row = {name: getattr(record, name) for name in COLUMNS}
    row |= {f"parameters.{name}": count for name, count in record.parameters.items()}
    return row | dict(_options(record.config))


def _options(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """{"training": {"clip": 1}} -> ("training.clip", 1); of names only those that an option has chosen."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from _options(value, f"{prefix}{name}.")
        elif name == "name" and "." in prefix[:-1]:  # network.cell, if it has options of its own
            yield prefix[:-1], value
        elif prefix and name != "name":
            yield prefix + name, value

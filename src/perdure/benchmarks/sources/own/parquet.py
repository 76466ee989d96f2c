"""Tables as parquet files, read with pyarrow, which is optional. Their first row is row 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from perdure.benchmarks.sources.archives import LARGEST
from perdure.benchmarks.sources.own.parts import Faults, OwnSequences
from perdure.benchmarks.sources.own.tables import (
    LABEL,
    RESERVED,
    SEQUENCE,
    SPLIT,
    Table,
    checked_header,
    checked_texts,
    parts_of_table,
)
from perdure.benchmarks.task import Array
from perdure.errors import PerdureError, with_extra


def read_parquet(path: Path, split: str | None, faults: Faults) -> list[OwnSequences]:
    """The parts of a parquet file with the same columns as a csv file."""
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise PerdureError(f"reading '{path}' needs pyarrow: {with_extra('parquet')}.") from None
    try:
        with parquet.ParquetFile(path) as file:
            facts = file.metadata
            size = sum(facts.row_group(group).total_byte_size for group in range(facts.num_row_groups))
            if size > LARGEST:
                raise PerdureError(f"'{path}' has {size} bytes unpacked; at most {LARGEST} are allowed.")
            content = file.read()
    except (arrow.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise PerdureError(f"'{path}' cannot be read as parquet ({reason}); write it again.") from None
    header = checked_header(path, list(content.column_names))
    if not content.num_rows:
        raise PerdureError(f"'{path}' has columns but no rows; a task needs sequences.")
    names = tuple(name for name in header if name not in RESERVED)
    columns = dict(zip(header, content.columns, strict=True))
    lines = np.arange(content.num_rows) + 1
    before = len(faults.found)
    texts = {
        name: checked_texts(path, name, _written(path, name, columns[name]), lines, faults)
        for name in RESERVED
        if name in header
    }
    if len(faults.found) > before:
        return []
    features = np.stack([_feature(path, name, columns[name]) for name in names], axis=1)
    table = Table(str(path), texts[SEQUENCE], texts[LABEL], texts.get(SPLIT), features, names, lines)
    return parts_of_table(table, split, faults)


def _written(path: Path, name: str, column: Any) -> list[str]:
    """A column of strings or numbers, as a csv file would have them; missing values are empty."""
    values = column.to_pylist()
    known: tuple[type, ...] = (str, int, type(None), *((float,) if name == LABEL else ()))
    odd = [row for row, value in enumerate(values) if not isinstance(value, known)]
    if odd:
        raise PerdureError(
            f"'{path}', row {odd[0] + 1}: column '{name}' holds {values[odd[0]]!r}; it must hold strings or "
            f"{'' if name == LABEL else 'whole '}numbers."
        )
    return ["" if value is None else str(value) for value in values]


def _feature(path: Path, name: str, column: Any) -> Array:
    import pyarrow as arrow

    kind = column.type
    if not (arrow.types.is_integer(kind) or arrow.types.is_floating(kind) or arrow.types.is_boolean(kind)):
        raise PerdureError(f"'{path}': column '{name}' has type {kind}; features must be numbers.")
    return np.asarray(column.cast(arrow.float64()).to_numpy(), dtype=np.float64)  # missing values are NaN

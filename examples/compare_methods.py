"""Three methods on a small Permuted Copy Task from Python, and how well they retain the first task."""

from __future__ import annotations

import tempfile

import perdure

with tempfile.TemporaryDirectory() as folder:
    for method in ("fine-tuning", "online-ewc", "masking+si"):
        config = perdure.build("permuted-copy", method, scale="smoke", training__iterations=300)
        record = perdure.run(config, folder).record
        print(
            f"{method:>12}: during {record.during:5.1f} %, final {record.final:5.1f} %, "
            f"task 1 at the end {record.accuracy[-1][0]:5.1f} %"
        )

"""python -m strokes FOLDER [OUT]: make the strokes from the four files of MNIST, compare, and write them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from perdure.errors import PerdureError
from perdure.files import write
from perdure.report.progress import Display
from strokes.convert import differing, regenerate


def main(words: Sequence[str]) -> int:
    """Returns the exit code: 0 if all digits are the same as those that come with Perdure."""
    if len(words) not in (1, 2):
        print("python -m strokes FOLDER [OUT]: FOLDER holds the four files of MNIST", file=sys.stderr)
        return 2
    try:
        with Display() as display:
            content = regenerate(Path(words[0]), display.built)
        if len(words) == 2:
            write(Path(words[1]), content)
        wrong = differing(content)
    except PerdureError as error:
        print(f"strokes: {error}", file=sys.stderr)
        return 2
    if wrong:
        print(
            f"strokes: {wrong} digits made from '{words[0]}' differ from those that come with Perdure; "
            f"these need MNIST as it was published.",
            file=sys.stderr,
        )
        return 2
    print(f"All digits made from '{words[0]}' are the same as those that come with Perdure.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""AudioSet with LSTMs of 8 to 256 units, by which the paper chose 32."""

from __future__ import annotations

from perdure.paper.comparison import Row, percent
from perdure.paper.conclusions import Claim, difference
from perdure.paper.item import Setting
from perdure.paper.sweep import SweepItem, SweepPoint

PUBLISHED = {8: (73, 29), 16: (77, 32), 32: (79, 41), 64: (80, 53), 128: (81, 67), 256: (81, 69)}
"""During and final of Fine-tuning by units, one seed, from the published commands of the original."""
SMALLEST, CHOSEN, LARGEST = 8, 32, 256


ITEM = SweepItem(
    title="AudioSet: units of the LSTM",
    source="SM text (supp:exp:details:audioset); numbers of the published commands (calls 4 to 9), n = 1",
    about="Fine-tuning on ten tasks of ten classes with LSTMs of 8 to 256 units.",
    axis="units",
    points=tuple(
        SweepPoint(
            "Fine-tuning",
            units,
            Row(
                Setting(f"{units} units", "audioset", "fine-tuning", {"network.hidden": (units,)}),
                {"during": percent(during, n=1), "final": percent(final, n=1)},
            ),
        )
        for units, (during, final) in PUBLISHED.items()
    ),
    claims=(
        Claim(
            "32 units learn new tasks about as well as larger networks",
            f"{LARGEST} units minus {CHOSEN} units (during accuracy)",
            ((1.0, f"{LARGEST} units", "during"), (-1.0, f"{CHOSEN} units", "during")),
            "same",
            margin=3.0,
        ),
        difference(
            "fewer units learn new tasks less well", f"{CHOSEN} units", f"{SMALLEST} units", column="during"
        ),
    ),
)

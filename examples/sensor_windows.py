"""Windows of body sensors: people doing sports, activities arriving over time.

Daily and Sports Activities (Altun, Barshan and Tunçel 2010) as one file, dsa/dsa.npz.xz below PERDURE_DATA:
differences along time in two bytes, see `read`.
"""

import io
import lzma
import os
from pathlib import Path

import numpy as np

import perdure

NAMES = (  # of activities 1 to 12
    *("sitting", "standing", "on the back"),
    *("on the side", "upstairs", "downstairs"),
    *("in a lift", "moving in a lift", "walking"),
    *("on a treadmill", "uphill on it", "running"),
)
PATH = Path(os.environ.get("PERDURE_DATA", "data")) / "dsa" / "dsa.npz.xz"


def read(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Windows [N, 125, 45] of 5 s, their activities [N], and the people who did them [N]."""
    with np.load(io.BytesIO(lzma.decompress(path.read_bytes()))) as file:
        high, low = file["planes"].astype(np.uint16)
        steps = np.cumsum(high * 256 + low, axis=2, dtype=np.uint16)
        x = steps.transpose(1, 2, 0) * file["scale"] + file["offset"]
        return x.astype(np.float32), file["activity"], file["subject"]


def main(iterations: int = 300, tasks: int = 4, windows: int = 10_000) -> perdure.ContinualLearner | None:
    """Three activities per task; the last person is held out, so that the test is on somebody new."""
    if not PATH.exists():
        print(f"There is no '{PATH}'; set PERDURE_DATA to the folder with dsa/dsa.npz.xz.")
        return None
    x, activity, person = read(PATH)
    x = x[:, ::5]  # five steps per second are enough
    learner = perdure.ContinualLearner(
        "coresets", network={"cell": "gru", "hidden": 64}, training={"iterations": iterations}, verbose=0
    )
    held_out = {}
    for number in range(tasks):
        arrived = NAMES[3 * number : 3 * number + 3]
        chosen = (activity > 3 * number) & (activity <= 3 * number + 3)
        known, new = chosen & (person < 8), chosen & (person == 8)
        some = np.random.default_rng(0).permutation(np.flatnonzero(known))[:windows]
        name = ", ".join(arrived)
        learner.learn(name, x[some], np.array(NAMES)[activity[some] - 1])
        held_out[name] = x[new], np.array(NAMES)[activity[new] - 1]
        scores = learner.score(held_out)
        print(f"after {name}:", ", ".join(f"{score:.0f} %" for score in scores.values()))
    return learner


if __name__ == "__main__":
    main()

"""The figure of the README: what ten methods retain, from the committed results and the paper's numbers.

`python docs/figures/table_1.py` draws it again; a method without a committed record shows the paper's alone.
"""

from pathlib import Path

from matplotlib.figure import Figure

from perdure.paper.committed import kept_findings
from perdure.paper.items.table_1 import ITEM
from perdure.report.palette import method_colours

ROOT = Path(__file__).parents[2]
ours = {
    cell.row: (cell.ours, one.scale)
    for one in kept_findings(ROOT / "results")
    if one.name == "table-1"
    for cell in one.cells
    if cell.column == "final" and cell.ours is not None
}
rows = sorted(ITEM.rows, key=lambda row: -row.published["final"].mean)
colours = method_colours([row.setting.method for row in rows])
figure = Figure(figsize=(7.2, 3.4), layout="constrained")
axes = figure.subplots()
for place, row in enumerate(rows):
    published, colour = row.published["final"].mean, colours[row.setting.method][0]
    if row.setting.label in ours:
        number, _ = ours[row.setting.label]
        axes.barh(place, number.mean, xerr=number.sem, color=colour, height=0.7, capsize=2)
        axes.text(51, place, f"{number.mean:.1f} % (n = {number.n})", va="center", color="white", fontsize=8)
    else:
        axes.barh(place, published, color=colour, alpha=0.35, height=0.7)
        axes.text(51, place, f"{published:.1f} %", va="center", fontsize=8)
    axes.plot(
        [published], [place], "D", mfc="white", mec="black", ms=5, label=None if place else "the paper's"
    )
axes.set_yticks(range(len(rows)), [row.setting.method for row in rows])
axes.invert_yaxis()
axes.set_xlim(50, 101.5)
scales = ", ".join(sorted({scale for _, scale in ours.values()}))
said = f"bars: ours, scale {scales}, mean and SEM" if ours else "all numbers: the paper's, n = 10"
axes.set_xlabel(f"accuracy over five permuted copy tasks at the end (%); chance is 50\n{said}", fontsize=9)
axes.legend(loc="lower right", fontsize=8)
figure.savefig(ROOT / "docs" / "table_1.png", dpi=130)

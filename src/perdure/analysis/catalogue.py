"""The named analyses: the help text and options of each, and how to make a finding from a run.

`ANALYSES[name].read(values)` checks options; `ANALYSES[name](folder, record, options)` runs the analysis.
Nothing heavy is loaded before the latter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perdure.analysis import choices
from perdure.errors import PerdureError, unknown
from perdure.options import Options, validated

if TYPE_CHECKING:
    from perdure.analysis.finding import Finding
    from perdure.storage.record import Record
    from perdure.storage.store import RunFolder


@dataclass(frozen=True)
class Analysis:
    """One entry of the catalogue."""

    name: str
    about: str
    """One line of help."""
    options: type[Options]
    """Its options; their docstrings are their help texts."""
    needs_run: bool = True

    def read(self, values: Mapping[str, Any]) -> Options:
        """Options from values by name, which may still be strings; raises a helpful error if one is wrong."""
        return validated(self.options, dict(values), self.name)

    def __call__(self, folder: RunFolder | None, record: Record | None, options: Options) -> Finding:
        """The finding about a finished run; folder and record are None if no run is needed."""
        from perdure.analysis import newer, views
        from perdure.analysis.opened import OpenedRun

        assert isinstance(options, self.options)
        if not self.needs_run:
            finding: Finding = views.WITHOUT_RUN[self.name](options)
            return finding
        if folder is None or record is None:
            raise PerdureError(f"Analysis '{self.name}' needs a finished run; name one.")
        finding = (views.OF_RUN | newer.OF_RUN)[self.name](OpenedRun(folder, record), options)
        return finding


_ENTRIES = (
    Analysis(
        "dimensionality",
        "intrinsic dimensionality of the hidden states, by (kernel) PCA",
        choices.Dimensionality,
    ),
    Analysis(
        "importance", "mean importance of recurrent weights: Fisher, or stored values", choices.Importance
    ),
    Analysis(
        "step-importance",
        "what each step contributes to the Fisher of recurrent weights",
        choices.StepImportanceOptions,
    ),
    Analysis(
        "sensitivity",
        "how strongly outputs depend on recurrent weights, independently of the residual loss",
        choices.SensitivityOptions,
    ),
    Analysis("supervised", "accuracy with only n dimensions of the hidden states", choices.Supervised),
    Analysis("readout", "similarity of the subspaces that the tasks' heads read", choices.Readout),
    Analysis(
        "embeddings", "distances between task embeddings or generated weights (hnet)", choices.Embeddings
    ),
    Analysis("flatness", "mean Fisher of each task right after it was learnt", choices.FlatnessOptions),
    Analysis(
        "theory", "linear RNNs: tasks in orthogonal subspaces, until no more fit", choices.Theory, False
    ),
    Analysis(
        "rehearsed",
        "whether stored, reconstructed and replayed sequences are like real ones",
        choices.RehearsedOptions,
    ),
    Analysis("steps", "accuracy at each output step", choices.Steps),
    Analysis("transfer", "forward and backward transfer of each task", choices.TransferOptions),
    Analysis(
        "plasticity", "accuracy, dormant units and rank of states of each new task", choices.PlasticityOptions
    ),
    Analysis("forgetting", "accuracy of each task throughout the run", choices.Forgetting),
)

ANALYSES = {entry.name: entry for entry in _ENTRIES}
"""All analyses by name."""


def find_analysis(name: str) -> Analysis:
    """The analysis of that name; raises a helpful error if there is none."""
    if name not in ANALYSES:
        raise unknown("analysis", name, ANALYSES)
    return ANALYSES[name]

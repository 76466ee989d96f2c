"""The four claims of the paper, each with the findings of our items that speak for or against it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from perdure.analysis.statistics import NOT_DECIDED
from perdure.paper.findings import CONTRADICTED, SUPPORTED, THE_PAPER, WEAKER, Conclusion, Findings


@dataclass(frozen=True)
class Theme:
    """A claim of the paper as a whole."""

    claim: str
    evidence: Mapping[str, Sequence[str]]
    """By item, the beginnings of the findings of the paper that it rests on."""
    exceptions: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The same for findings of the paper that speak against it."""

    def behind(self, stated: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
        """Of the findings that items state, by item: those the claim rests on."""
        return [
            (item, said)
            for item, starts in self.evidence.items()
            for said in stated.get(item, ())
            if said.startswith(tuple(starts))
        ]

    def found(self, findings: Sequence[Findings]) -> Iterator[tuple[Findings, Conclusion]]:
        """What our items say about it."""
        return _among(findings, self.evidence)

    def against(self, findings: Sequence[Findings]) -> Iterator[tuple[Findings, Conclusion]]:
        """What our items say about the paper's own exceptions."""
        return _among(findings, self.exceptions)

    def summary(self, findings: Sequence[Findings], stated: Mapping[str, Sequence[str]]) -> str:
        """How many of the findings behind it ours support, contradict, do not decide, or lack runs for."""
        found = list(self.found(findings))
        if not found:
            return "No item with results speaks about it yet."
        counts = Counter(conclusion.verdict for _, conclusion in found)
        seen = {(one.name, _said(conclusion)) for one, conclusion in found}
        counts["missing"] = sum((item, f"{said}.") not in seen for item, said in self.behind(stated))
        total = counts.total()
        said = (
            f"Of {total} finding{'' if total == 1 else 's'} behind it ours support {counts[SUPPORTED]} "
            f"and contradict {counts[CONTRADICTED]}; in its direction, but within the margin: "
            f"{counts[WEAKER]}, not decided: {counts[NOT_DECIDED]}, without runs yet: {counts['missing']}."
        )
        return f"{said} {_overall(counts)}"


def _among(
    findings: Sequence[Findings], starts: Mapping[str, Sequence[str]]
) -> Iterator[tuple[Findings, Conclusion]]:
    """The conclusions about findings that begin in one of these ways, by item."""
    for one in findings:
        for conclusion in one.conclusions:
            if _said(conclusion).startswith(tuple(starts.get(one.name, ()))):
                yield one, conclusion


def _said(conclusion: Conclusion) -> str:
    return conclusion.paper.removeprefix(THE_PAPER)


def _overall(counts: Counter[str]) -> str:
    """The whole claim in one sentence."""
    supported, contradicted = counts[SUPPORTED], counts[CONTRADICTED]
    start = "Our data" if counts.total() == supported + contradicted else "Where our data decide, they"
    if not supported and not contradicted:
        return "Our data do not decide it."
    if not (supported and contradicted):
        return f"{start} {'support' if supported else 'contradict'} the claim."
    return f"{start} are mixed. Findings share runs, so that their numbers are no vote."


THEMES = (
    Theme(
        "Weight-importance methods lose accuracy as working memory grows",
        {
            "smnist": ("Online EWC loses", "SI loses"),
            "table-2": ("more computation costs", "five XORs cost HNET less"),
            "intuition": tuple(
                f"{said} ({form})"
                for said in (
                    "recurrent weights become more important as patterns grow",
                    "the length of the pattern matters more than that of the sequence",
                )
                for form in ("Fisher", "SI")  # LSTMs are not compared at equal loss
            ),
        },
    ),
    Theme(
        "Sequence length alone does not hurt weight-importance methods",
        {
            "upsampling": ("longer sequences alone", "more digits hurt Online EWC more"),
            "table-2": ("length alone hardly affects Online EWC", "length alone costs"),
            "intuition": ("the length of the sequence alone",),
        },
    ),
    Theme(
        "HNET is the best method without samples of old tasks",
        {
            "table-1": ("HNET is better",),
            "table-2": ("HNET is better",),
            "smnist": ("HNET is better",),
            "audioset": ("HNET is better",),
            "pos": ("HNET is better",),
            "single-head": ("HNET is better",),
        },
        exceptions={"smnist": ("masking with SI is better than HNET",)},
    ),
    Theme(
        "Rehearsal works well, generative replay only where data are simple",
        {
            "table-1": ("HNET is as good as",),
            "smnist": ("stored samples",),
            "smnist-rehearsal": ("replay protected by a hypernetwork is as good",),
            "replay-samples": ("samples from the prior", "on the Copy Task samples"),
            "audioset": ("generative replay fails",),
        },
    ),
)
"""In the order of the paper."""

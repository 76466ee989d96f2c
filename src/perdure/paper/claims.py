"""The four claims of the paper, each with the findings of our items that speak for or against it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from perdure.analysis.statistics import NOT_DECIDED
from perdure.paper.findings import CONTRADICTED, SUPPORTED, Conclusion, Findings


@dataclass(frozen=True)
class Theme:
    """A claim of the paper as a whole."""

    claim: str
    evidence: Mapping[str, Sequence[str]]
    """By item, the beginnings of the findings of the paper that it rests on."""

    def found(self, findings: Sequence[Findings]) -> Iterator[tuple[Findings, Conclusion]]:
        """What our items say about it."""
        for one in findings:
            for conclusion in one.conclusions:
                said = conclusion.paper.removeprefix("The paper finds that ")
                if any(said.startswith(start) for start in self.evidence.get(one.name, ())):
                    yield one, conclusion

    def summary(self, findings: Sequence[Findings]) -> str:
        """How many findings support it, contradict it, or are not decided."""
        counts = Counter(conclusion.verdict for _, conclusion in self.found(findings))
        if not counts:
            return "No item with results speaks about it yet."
        total = sum(counts.values())
        said = (
            f"Of {total} finding{'' if total == 1 else 's'} behind it ours support {counts[SUPPORTED]} "
            f"and contradict {counts[CONTRADICTED]}; {counts[NOT_DECIDED]} are not decided."
        )
        return f"{said} {_overall(counts)}"


def _overall(counts: Mapping[str, int]) -> str:
    """The whole claim in one sentence."""
    if counts[SUPPORTED] and not counts[CONTRADICTED]:
        return "Our data support the claim" + (" as far as they decide." if counts[NOT_DECIDED] else ".")
    if counts[CONTRADICTED] and not counts[SUPPORTED]:
        return "Our data contradict the claim" + (" as far as they decide." if counts[NOT_DECIDED] else ".")
    if counts[SUPPORTED]:
        return "Our data support the claim in part."
    return "Our data do not decide it."


THEMES = (
    Theme(
        "Weight-importance methods lose accuracy as working memory grows",
        {
            "smnist": ("Online EWC loses", "SI loses"),
            "table-2": ("more computation costs", "five XORs cost HNET less"),
            "upsampling": ("more digits hurt Online EWC",),
            "intuition": ("recurrent weights become more", "the length of the pattern matters more"),
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
        "HNET is the best method that stores no data",
        {
            "table-1": ("HNET is better",),
            "table-2": ("HNET is better",),
            "smnist": ("HNET is better",),
            "audioset": ("HNET is better",),
            "pos": ("HNET is better",),
            "single-head": ("HNET is better",),
        },
    ),
    Theme(
        "Rehearsal is good where data are simple",
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

"""Visits of one task in a row, which are one task for hooks whose memory sums up each task once.

Such a hook begins every visit with what it remembered before the first, so that no task is protected against
itself; what the visits remember is then joined into one summary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from perdure.learning.learner import Learner, LearnerState
from perdure.networks.layout import Vectors


@dataclass(frozen=True)
class Row:
    """What hooks that sum up tasks remembered before the first visit, and the samples of all visits."""

    memories: Mapping[str, Vectors]
    samples: int = 0

    @classmethod
    def beginning(cls, learner: Learner, state: LearnerState) -> Row:
        """The row of a visit after which another task was learnt, or none; joint training has no rows."""
        summarising = [name for name, hook in learner.hooks.items() if hook.summarises]
        return cls({name: state.memories[name] for name in ([] if learner.together else summarising)})

    def before(self, state: LearnerState) -> LearnerState:
        """The state with which one more visit begins."""
        return replace(state, memories={**state.memories, **self.memories})

    def joined(
        self, learner: Learner, earlier: LearnerState, latest: LearnerState, samples: int
    ) -> LearnerState:
        """The state after a visit with so many samples, with one summary of it and of those before."""
        if not self.samples:
            return latest
        share = samples / (self.samples + samples)
        memories = {
            name: learner.hooks[name].joined(earlier.memories[name], latest.memories[name], share)
            for name in self.memories
        }
        return replace(latest, memories={**latest.memories, **memories})

    def after(self, samples: int) -> Row:
        """With one more visit."""
        return replace(self, samples=self.samples + samples)

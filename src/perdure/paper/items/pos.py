"""Part-of-speech tagging of 20 languages, one after the other."""

from __future__ import annotations

from perdure.paper.comparison import ComparisonItem, row
from perdure.paper.conclusions import difference, forgotten

ITEM = ComparisonItem(
    title="Part-of-speech tagging of 20 languages",
    source="SM Table (tab:pos:results), n = 10",
    about="Each language is a task of 17 universal tags, read by a bidirectional LSTM of 32 units.",
    rows=(
        row("Multitask", "pos", "multitask", None, (92.52, 0.02)),
        row("From-scratch", "pos", "from-scratch", None, (95.04, 0.01)),
        row("Fine-tuning", "pos", "fine-tuning", (91.63, 0.01), (48.62, 0.58)),
        row("HNET", "pos", "hnet", (89.83, 0.09), (89.30, 0.09)),
        row("Online EWC", "pos", "online-ewc", (87.49, 0.04), (86.89, 0.03)),
        row("SI", "pos", "si", (85.66, 0.06), (84.62, 0.08)),
        row("Masking", "pos", "masking", (91.29, 0.02), (46.76, 0.81)),
        row("Masking+SI", "pos", "masking+si", (82.60, 0.09), (82.34, 0.09)),
        row("Coresets-100", "pos", "coresets", (91.64, 0.02), (90.05, 0.03), {"rehearsal.size": 100}),
        row("Coresets-500", "pos", "coresets", (91.60, 0.03), (90.63, 0.03), {"rehearsal.size": 500}),
    ),
    laptop_seeds=3,
    claims=(
        difference("HNET is better than Online EWC", "HNET", "Online EWC"),
        difference("HNET is better than SI", "HNET", "SI"),
        difference("HNET is better than masking with SI", "HNET", "Masking+SI"),
        difference("Online EWC is better than SI", "Online EWC", "SI"),
        difference("100 stored sentences a language are better than HNET", "Coresets-100", "HNET"),
        difference("500 stored sentences are better than 100", "Coresets-500", "Coresets-100"),
        difference("languages learnt separately do better than together", "From-scratch", "Multitask"),
        forgotten("Fine-tuning forgets", "Fine-tuning"),
        forgotten("plain masking forgets", "Masking"),
    ),
)

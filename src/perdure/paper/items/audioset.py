"""Split-AudioSet-10: ten tasks of ten sounds each, all methods."""

from __future__ import annotations

from perdure.paper.comparison import ComparisonItem, row
from perdure.paper.conclusions import difference, forgotten

ITEM = ComparisonItem(
    title="Split-AudioSet-10, all methods",
    source="Table 3 (tab:audioset:CL1:results), n = 10",
    about=(
        "Ten tasks of ten classes of sounds, 10 seconds each, with an LSTM of 32 units. The paper has no "
        "number for generative replay: no training of it was successful."
    ),
    rows=(
        row("Multitask", "audioset", "multitask", None, (77.31, 0.10)),
        row("From-scratch", "audioset", "from-scratch", None, (79.06, 0.11)),
        row("Fine-tuning", "audioset", "fine-tuning", (71.95, 0.24), (49.02, 1.00)),
        row("HNET", "audioset", "hnet", (73.05, 0.45), (71.76, 0.62)),
        row("Online EWC", "audioset", "online-ewc", (68.82, 0.20), (65.56, 0.35)),
        row("SI", "audioset", "si", (67.66, 0.10), (66.92, 0.04)),
        row("Masking", "audioset", "masking", (75.81, 0.15), (50.87, 1.09)),
        row("Masking+SI", "audioset", "masking+si", (64.88, 0.19), (64.86, 0.20)),
        row("Coresets-100", "audioset", "coresets", (74.25, 0.11), (72.30, 0.11), {"rehearsal.size": 100}),
        row("Coresets-500", "audioset", "coresets", (77.03, 0.08), (73.90, 0.07), {"rehearsal.size": 500}),
        row("Gen. Replay (RtF)", "audioset", "rtf"),
    ),
    claims=(
        difference("HNET is better than Online EWC", "HNET", "Online EWC"),
        difference("HNET is better than SI", "HNET", "SI"),
        difference("HNET is better than masking with SI", "HNET", "Masking+SI"),
        difference("SI is better than Online EWC", "SI", "Online EWC"),
        difference("HNET nearly reaches 100 stored clips a task", "HNET", "Coresets-100", "same"),
        difference("500 stored clips a task are better than HNET", "Coresets-500", "HNET"),
        difference("tasks learnt together do worse than separately", "From-scratch", "Multitask"),
        forgotten("Fine-tuning forgets", "Fine-tuning"),
        forgotten("plain masking forgets", "Masking"),
        difference("generative replay fails where HNET does not", "HNET", "Gen. Replay (RtF)"),
        difference("generative replay fails where stored clips do not", "Coresets-100", "Gen. Replay (RtF)"),
    ),
)

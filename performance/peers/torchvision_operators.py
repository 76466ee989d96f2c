"""A torchvision that was compiled for another torch cannot load its operators, and then cannot be imported.

avalanche-lib imports torchvision for images and never calls its operators here. Declaring the two that
torchvision describes at import is enough to import it beside a CPU build of torch.
"""

from __future__ import annotations

import torch

_LIBRARIES: list[torch.library.Library] = []
"""A declaration lives as long as its library."""


def declare_missing_operators() -> None:
    """Import torchvision; if its compiled part cannot be loaded, declare operators that nobody calls."""
    try:
        import torchvision  # noqa: F401
    except RuntimeError as error:
        if "torchvision::" not in str(error):
            raise
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _LIBRARIES.append(library)

"""What training makes small: losses of scores z that move by no more than the distance."""

from __future__ import annotations

import math
from typing import Any

from likewise.enforce.links import LINKS
from likewise.enforce.lipschitz.training import Objective, import_torch

# Half the score that a hinge asks for between two classes: where "clip" reaches 0 and 1, and the others come close.
_MARGINS = {"clip": 0.5, "logistic": 1.0, "probit": 1.0, "softmax": 1.0}


def classification(loss: str, link: str) -> Objective:
    """Loss of classes, coded from 0; `link` is a key of `LINKS`."""
    torch = import_torch()
    unit, margin = LINKS[link].unit, _MARGINS[link]

    def softmax_log(z: Any, y: Any) -> Any:
        return torch.nn.functional.cross_entropy(unit * z, y.long(), reduction="none")

    def softmax_hinge(z: Any, y: Any) -> Any:
        own = torch.nn.functional.one_hot(y.long(), z.shape[1]).bool()
        others = z.masked_fill(own, -math.inf).amax(dim=1)
        # Half the difference of two such scores moves as one score of two classes does.
        return torch.relu(margin - (z[own] - others) / 2)

    def logistic_log(z: Any, y: Any) -> Any:
        return torch.nn.functional.softplus(-unit * _signed(z, y))

    def probit_log(z: Any, y: Any) -> Any:
        return -torch.special.log_ndtr(unit * _signed(z, y))

    def hinge(z: Any, y: Any) -> Any:
        return torch.relu(margin - _signed(z, y))

    if link == "softmax":
        return softmax_log if loss == "log" else softmax_hinge
    if loss == "hinge":
        return hinge
    return logistic_log if link == "logistic" else probit_log


def squared(z: Any, share: Any) -> Any:
    """Squared error, in units of the output range, for outcomes as shares of it."""
    return (z[:, 0] + 0.5 - share) ** 2


def _signed(z: Any, y: Any) -> Any:
    return (2 * y - 1) * z[:, 0]

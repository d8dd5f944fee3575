"""Neural collapse as a max-margin problem: normalised features that are free to move become a simplex."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from annotated_types import Ge
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.validation import require_known, require_room

__all__ = ["SimplexMargin", "simplex_margin"]


class SimplexMargin(NamedTuple):
    """The solution, up to a rotation of the features.

    Attributes:
        value: ½‖W‖² at margins of one.
        gram: Cosines of the features of the classes, shape (classes, classes).
        classifier_share: W over the features, w_k = share · h_k.
        least_features: Dimensions that the simplex needs.
    """

    value: float
    gram: Float[np.ndarray, "classes classes"]
    classifier_share: float
    least_features: int

    __repr__ = short_repr


@covers(
    network="any whose last features are normalised and free to move",
    data="balanced classes",
    start="any",
    gives="features and classifier that training ends in",
    reference="arXiv:2210.03820",
)
def simplex_margin(classes: Annotated[int, Ge(2)]) -> SimplexMargin:
    """(K − 1)²/(2K) = min ½‖W‖² with (w_y − w_c) · h_y ≥ 1 and ‖h‖ = 1, at a simplex of h and w_k = (K − 1)/K h_k.

    Weights before a normalisation have the rate zero, so that the last layer alone is penalised, and features are free
    to move on the sphere: they end where a classifier of the least norm separates them, at the cosines −1/(K − 1).
    Samples of a class share one point. It takes K − 1 features at least, layers that can move them anywhere, and
    classes of one size.

    Args:
        classes: K ≥ 2.

    Raises:
        InputError: Fewer than two classes.

    References:
        Kunin, Yamamura, Ma, Ganguli, arXiv:2210.03820; the simplex is that of Papyan, Han, Donoho, arXiv:2008.08186.

    Example:
        >>> found = simplex_margin(4)
        >>> print(found.value, found.gram[0].round(4), found.classifier_share)
        1.125 [ 1.     -0.3333 -0.3333 -0.3333] 0.75
    """
    require_known(classes=classes)
    require_room(2 * classes**2, classes=classes)
    gram = (classes * np.eye(classes) - 1) / (classes - 1)
    return SimplexMargin((classes - 1) ** 2 / (2 * classes), gram, (classes - 1) / classes, classes - 1)

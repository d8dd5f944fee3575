"""Neural collapse as a max-margin problem: free normalised features form a simplex."""

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
    """Maximum-margin features and classifier, determined up to a rotation of the features.

    Attributes:
        value: ½‖W‖² at margins of one.
        gram: Cosines between the features of the classes, shape (classes, classes).
        classifier_share: Ratio of the classifier to the features, w_k = ratio · h_k.
        least_features: Smallest number of features that the simplex requires.
    """

    value: float
    gram: Float[np.ndarray, "classes classes"]
    classifier_share: float
    least_features: int

    __repr__ = short_repr


@covers(
    network="any network whose last features are normalised and can move freely",
    data="balanced classes",
    start="any",
    gives="the limit of features and classifier in training",
    reference="arXiv:2210.03820",
)
def simplex_margin(classes: Annotated[int, Ge(2)]) -> SimplexMargin:
    """Limit of the features and the classifier in neural collapse, in which both form a simplex.

        min ½‖W‖² subject to (w_y − w_c) · h_y ≥ 1, ‖h‖ = 1:   value (K − 1)²/(2K),
        w_k = (K − 1)/K h_k,   cosines −1/(K − 1)

    Weights followed by a normalisation layer have rate zero, so only the last layer is penalised, and the features move
    freely on the sphere. They converge to the configuration that can be separated by the classifier of smallest norm.
    All samples of a class converge to one point. The result requires at least K − 1 features, layers that can move the
    features anywhere, and classes of equal size.

    Args:
        classes: K ≥ 2.

    Raises:
        InputError: If there are fewer than two classes.

    References:
        Kunin, Yamamura, Ma, Ganguli, arXiv:2210.03820; Papyan, Han, Donoho, arXiv:2008.08186, for the
        simplex.

    Example:
        >>> found = simplex_margin(4)
        >>> print(found.value, found.gram[0].round(4), found.classifier_share)
        1.125 [ 1.     -0.3333 -0.3333 -0.3333] 0.75
    """
    require_known(classes=classes)
    require_room(2 * classes**2, classes=classes)
    gram = (classes * np.eye(classes) - 1) / (classes - 1)
    return SimplexMargin((classes - 1) ** 2 / (2 * classes), gram, (classes - 1) / classes, classes - 1)

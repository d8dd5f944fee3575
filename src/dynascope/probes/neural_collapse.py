"""Neural collapse: how far last-layer features of a class have become one point, and the classes a simplex."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

from annotated_types import Ge

from dynascope.errors import InputError
from dynascope.probes.class_moments import ClassMoments, class_moments
from dynascope.probes.features.samples import finite_matrix
from dynascope.results.named_tuples import short_repr
from dynascope.validation import array_namespace, checked, holds, require

__all__ = [
    "ClassMoments",
    "CollapseMetrics",
    "class_moments",
    "collapse_metrics",
    "nearest_mean_disagreement",
    "neural_collapse",
]

Layout = Literal["features_classes", "classes_features"]

_RESOLUTION = 1e-10  # eigenvalues of Σ_B below this fraction of the largest count as zero
_ROUNDING = 1e-14  # a distance of means below this fraction of them is rounding


class CollapseMetrics(NamedTuple):
    """NC1 to NC4, zero each where features have collapsed.

    Attributes:
        nc1: tr(Σ_W Σ_B⁺)/C.
        nc1_product: n C tr(Σ_W Σ_B).
        nc2_angle: max_ij |cos(M_i, M_j) − (C δ_ij − 1)/(C − 1)|.
        nc2_norm: Standard deviation of ‖M_c‖ over their mean.
        nc3: ‖Wᵀ/‖W‖ − M/‖M‖‖; None without a classifier.
        class_mean_norm: ‖M_c‖ over `class`.
        nc4: The share of samples for which the largest output is that of another class than the nearest class mean;
            None without a classifier, and from `collapse_metrics`.
    """

    nc1: Annotated[Any, ""]
    nc1_product: Annotated[Any, ""]
    nc2_angle: Annotated[Any, ""]
    nc2_norm: Annotated[Any, ""]
    nc3: Annotated[Any, ""]
    class_mean_norm: Annotated[Any, "class"]
    nc4: Annotated[Any, ""] = None

    __repr__ = short_repr


@checked
def collapse_metrics(
    moments: ClassMoments,
    classifier: Any | None = None,
    *,
    layout: Layout | None = None,
    center_classifier: bool = False,
) -> CollapseMetrics:
    """NC1 to NC3 from the moments of a stream of batches; zero each where features have collapsed.

    With M_c = μ_c − μ_g, Σ_W = Σ_j (h_j − μ_{y_j})(·)ᵀ/n and Σ_B = Σ_c M_c M_cᵀ/C they are

        nc1            tr(Σ_W Σ_B⁺)/C, free of the scale of the features; eigenvalues of Σ_B below 1e-10 are left out
        nc1_product    n C tr(Σ_W Σ_B), which goes with the fourth power of the scale
        nc2_angle      max_ij |cos(M_i, M_j) − (C δ_ij − 1)/(C − 1)|, always zero for two classes
        nc2_norm       standard deviation of ‖M_c‖ over their mean, likewise
        nc3            ‖Wᵀ/‖W‖ − M/‖M‖‖ in Frobenius norm, given the classifier

    Trained by squared loss without a bias, networks collapse to Wᵀ ∝ μ rather than M, and nc3 tends to
    √(2 − 2√(1 − 1/C)); centring W over the classes brings it to zero.

    Cost: 4p²C + 40pC² operations; memory for 3pC numbers.

    Args:
        moments: From `class_moments`, of all samples.
        classifier: W, shape (p, C): outputs = features @ W + bias; or its transpose. None leaves nc3 out.
        layout: "features_classes" for shape (p, C), "classes_features" for (C, p), as the weight of PyTorch's `Linear`.
            If not given the shape tells, which that of a square matrix does not.
        center_classifier: Whether to take its mean over classes off first.

    Returns:
        `CollapseMetrics` without nc4. Classes weigh the same in μ_g and Σ_B whatever their sizes, samples in Σ_W.

    Raises:
        InputError: A class without samples, a class mean that is equal to μ_g, or a classifier of another shape, square
            without a layout, with values that are not finite, or equal to zero (values are not seen while JAX traces).

    References:
        Papyan, Han & Donoho, arXiv:2008.08186; Nam, DPhil thesis (2024), 2.10 (the product form) and D.6 (its Σ_B is
        to be the pseudo-inverse).

    Example:
        >>> import numpy as np
        >>> corners = class_moments(np.eye(3)[[0, 0, 1, 2]], np.array([0, 0, 1, 2]), classes=3)
        >>> found = collapse_metrics(corners, np.eye(3), layout="features_classes")
        >>> round(float(found.nc1), 12), round(float(found.nc2_norm), 12), round(float(found.nc3), 12)
        (0.0, 0.0, 0.605810893055)
    """
    xp = array_namespace(moments.means)
    classes, p = moments.means.shape
    require(
        holds(xp.all(moments.sizes > 0)),
        "a class has no samples",
        argument="moments",
        remedy="give samples of each class, or number only the classes that there are",
    )
    m = moments.centred_means
    norms = xp.sqrt(_sum(m**2, 1))
    require(
        holds(xp.all(norms > _ROUNDING * xp.max(xp.abs(moments.means)))),
        "a class mean is equal to the mean of all classes",
        argument="moments",
        value=0.0,
        remedy="measure features that tell the classes apart",
    )
    _, sizes, axes = xp.linalg.svd(m, full_matrices=False)
    kept = sizes**2 > _RESOLUTION * xp.max(sizes) ** 2
    across = _sum((axes @ moments.scatter) * axes, 1) / xp.where(kept, sizes, xp.ones_like(sizes)) ** 2
    units = m / norms[:, None]
    numbers = xp.cumulative_sum(xp.ones_like(norms), axis=0)
    same = xp.astype(numbers[:, None] == numbers, m.dtype)
    deviations = xp.abs(units @ units.T - (classes * same - 1) / (classes - 1))
    nc3 = None
    if classifier is not None:
        w = _oriented(classifier, p, classes, moments.means, layout).T
        w = w - xp.mean(w, axis=0) if center_classifier else w
        size = xp.sqrt(xp.sum(w**2))
        require(
            holds(size > 0),
            "the classifier is zero" + (" once it is centred" if center_classifier else ""),
            argument="classifier",
            value=0.0,
            remedy="measure a classifier that tells the classes apart",
        )
        nc3 = xp.sqrt(xp.sum((w / size - m / xp.sqrt(xp.sum(m**2))) ** 2))
    return CollapseMetrics(
        nc1=_sum(xp.where(kept, across, xp.zeros_like(across)), 0) / moments.samples,
        nc1_product=xp.sum(m @ moments.scatter * m),
        nc2_angle=xp.max(deviations),
        nc2_norm=xp.std(norms) / xp.mean(norms),
        nc3=nc3,
        class_mean_norm=norms,
    )


@checked
def nearest_mean_disagreement(
    moments: ClassMoments, features: Any, classifier: Any, bias: Any | None = None, *, layout: Layout | None = None
) -> Any:
    """NC4 of a batch: the number of its samples that the classifier puts in another class than the nearest class mean.

    A second pass over the samples, whose sum over batches, divided by n, is NC4. Without a bias, features that are not
    centred can disagree even where they have collapsed to a perfect simplex.

    Cost: 4npC operations; memory for 2nC + np numbers.

    Args:
        moments: From `class_moments`, of all samples.
        features: H of the batch, shape (n, p).
        classifier: W, shape (p, C): outputs = features @ W + bias; or its transpose.
        bias: Shape (C,); None for zeros.
        layout: As in `collapse_metrics`.

    Returns:
        The number, without dimension, in the precision of the moments. Of equal outputs or distances the first counts.

    Raises:
        InputError: Shapes that do not fit, or values that are not finite.

    Example:
        >>> import numpy as np
        >>> h, y = np.eye(3), np.arange(3)
        >>> moments = class_moments(h, y, classes=3)
        >>> bias = np.array([0.0, 0.0, 2.0])
        >>> float(nearest_mean_disagreement(moments, h, np.eye(3), bias, layout="features_classes"))
        2.0
    """
    xp = array_namespace(moments.means, features)
    h, _ = finite_matrix("features", features)
    classes, p = moments.means.shape
    require(
        h.shape[1] == p,
        f"features have {h.shape[1]} columns and the class means {p}",
        argument="features",
        value=tuple(features.shape),
        remedy="give the features of the same layer",
    )
    outputs = h @ _oriented(classifier, p, classes, moments.means, layout)
    if bias is not None:
        array_namespace(h, bias)
        row, _ = finite_matrix("bias", bias[None, :] if len(bias.shape) == 1 else bias)
        require(
            tuple(row.shape) == (1, classes),
            f"bias has shape {tuple(bias.shape)}",
            argument="bias",
            value=tuple(bias.shape),
            remedy=f"pass an array of shape ({classes},)",
        )
        outputs = outputs + row
    # ‖h − μ_c‖² without ‖h‖², which is common to all classes; centred, so that large means cost no digits.
    m = moments.centred_means
    closeness = (h - xp.mean(moments.means, axis=0)) @ m.T - _sum(m**2, 1) / 2
    return xp.sum(xp.astype(xp.argmax(outputs, axis=1) != xp.argmax(closeness, axis=1), h.dtype))


@checked
def neural_collapse(
    features: Any,
    labels: Any,
    classifier: Any | None = None,
    bias: Any | None = None,
    *,
    classes: Annotated[int, Ge(2)] | None = None,
    layout: Layout | None = None,
    center_classifier: bool = False,
) -> CollapseMetrics:
    """NC1 to NC4 of features on samples; zero each where features have collapsed.

    See `collapse_metrics` for NC1 to NC3. `nc4` is the share of samples for which the largest output is that of another
    class than the nearest class mean. For a stream of batches use `class_moments`, `collapse_metrics` and
    `nearest_mean_disagreement`.

    Cost: 2np² + 12npC operations; memory for p² + 2np + 3nC numbers. No n × n matrix is formed.

    Args:
        features: H, shape (n, p), the inputs of the last layer; of NumPy, JAX or PyTorch.
        labels: Classes 0..C−1 as whole numbers, shape (n,), of the same library.
        classifier: W, shape (p, C): outputs = features @ W + bias; or its transpose. None leaves nc3 and nc4 out.
        bias: Shape (C,); None for zeros.
        classes: C; if not given that of the classifier, or without one the largest label plus one.
        layout: "features_classes" for shape (p, C), "classes_features" for (C, p), as the weight of PyTorch's `Linear`.
            If not given the shape tells, which that of a square matrix does not.
        center_classifier: Whether nc3 takes the mean over classes off the classifier first.

    Raises:
        InputError: As the three functions.

    References:
        Papyan, Han & Donoho, arXiv:2008.08186.

    Example:
        >>> import numpy as np
        >>> h, y = np.array([[1.0, 0.1], [1.0, -0.1], [-1.0, 0.0], [-1.0, 0.0]]), np.array([0, 0, 1, 1])
        >>> found = neural_collapse(h, y, np.array([[1.0, -1.0], [0.0, 0.0]]), layout="features_classes")
        >>> round(float(found.nc1), 4), round(float(found.nc3), 4), round(float(found.nc4), 4)
        (0.0, 0.0, 0.0)
    """
    if classifier is None:
        moments = class_moments(features, labels, classes=_classes(labels) if classes is None else classes)
        return collapse_metrics(moments)
    h, _ = finite_matrix("features", features)
    largest = float(array_namespace(h).finfo(h.dtype).max) ** 0.25
    require(
        holds(array_namespace(h).all(abs(h) < largest)),
        f"features has values beyond {largest:.0e}, whose squares leave the numbers of {h.dtype}",
        argument="features",
        value=str(h.dtype),
        remedy="give them in other units",
    )
    w = _oriented(classifier, h.shape[1], None, h, layout)
    moments = class_moments(features, labels, classes=int(w.shape[1]) if classes is None else classes)
    found = collapse_metrics(moments, w, layout="features_classes", center_classifier=center_classifier)
    disagree = nearest_mean_disagreement(moments, features, w, bias, layout="features_classes")
    return found._replace(nc4=disagree / moments.samples)


def _classes(labels: Any) -> int:
    try:
        return int(array_namespace(labels).max(labels)) + 1
    except TypeError:
        raise InputError(
            "the number of classes is not known",
            argument="classes",
            remedy="give classes, or the classifier, where JAX traces",
        ) from None


def _oriented(classifier: Any, p: int, classes: int | None, beside: Any, layout: Layout | None) -> Any:
    """The classifier as a matrix of shape (p, C), whichever way round it was given; any C if it is not known."""
    array_namespace(beside, classifier)
    w, _ = finite_matrix("classifier", classifier)
    shape = tuple(w.shape)
    wanted = f"({p}, {'C' if classes is None else classes})"
    require(
        layout is not None or shape[0] != shape[1],
        f"classifier has the square shape {shape}, which does not tell its features from its classes",
        argument="layout",
        remedy='give layout="features_classes" if outputs are features @ classifier, "classes_features" if it is the '
        "weight of PyTorch's Linear",
    )
    if layout == "classes_features" or (layout is None and shape[0] != p):
        w = w.T
    require(
        w.shape[0] == p and classes in (None, w.shape[1]),
        f"classifier has shape {shape}",
        argument="classifier",
        value=shape,
        remedy=f"pass a matrix of shape {wanted}, or its transpose",
    )
    return w


def _sum(values: Any, axis: int) -> Any:
    return array_namespace(values).sum(values, axis=axis)

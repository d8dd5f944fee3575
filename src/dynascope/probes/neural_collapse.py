"""Neural collapse: convergence of last-layer features to one point per class, and of the class means to a simplex."""

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
_ROUNDING = 1e-14  # a distance of means below this fraction of their size is a rounding error


class CollapseMetrics(NamedTuple):
    """The metrics NC1 to NC4, which are zero for fully collapsed features, and the norms of the class means.

    Attributes:
        nc1: tr(Σ_W Σ_B⁺)/C.
        nc1_product: n C tr(Σ_W Σ_B); proportional to the fourth power of the features' scale, so it can grow while nc1
            falls.
        nc2_angle: max_ij |cos(M_i, M_j) − (C δ_ij − 1)/(C − 1)|.
        nc2_norm: Standard deviation of the norms ‖M_c‖ divided by their mean.
        nc3: ‖Wᵀ/‖W‖ − M/‖M‖‖; None without a classifier.
        class_mean_norm: ‖M_c‖ over `class`.
        nc4: Fraction of samples on which the classifier and the nearest class mean disagree; None without a classifier,
            and in results of `collapse_metrics`.
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
    """Compute NC1 to NC3 from the moments of a stream of batches; they are zero for fully collapsed features.

    With M_c = μ_c − μ_g, Σ_W = Σ_j (h_j − μ_{y_j})(·)ᵀ/n and Σ_B = Σ_c M_c M_cᵀ/C they are

        nc1            tr(Σ_W Σ_B⁺)/C, scale-invariant; omits eigenvalues of Σ_B below 1e-10 of the largest
        nc1_product    n C tr(Σ_W Σ_B), proportional to the fourth power of the scale, so it can grow while nc1 falls
        nc2_angle      max_ij |cos(M_i, M_j) − (C δ_ij − 1)/(C − 1)|, always zero for two classes
        nc2_norm       standard deviation of ‖M_c‖ divided by their mean, always zero for two classes
        nc3            ‖Wᵀ/‖W‖ − M/‖M‖‖ in Frobenius norm, if a classifier is given

    Networks trained on squared loss without a bias collapse to Wᵀ ∝ μ instead of Wᵀ ∝ M. Their nc3 then tends to
    √(2 − 2√(1 − 1/C)), or to zero if W is centred over the classes.

    Cost: 4p²C + 40pC² operations; memory for 3pC numbers.

    Args:
        moments: The result of `class_moments`, summed over all batches.
        classifier: W, shape (p, C), with outputs = features @ W + bias; or its transpose. None omits nc3.
        layout: "features_classes" for shape (p, C), or "classes_features" for (C, p), as in the weight of PyTorch's
            `Linear`. Required only if W is square; otherwise it is inferred from the shape.
        center_classifier: Whether to subtract the mean over classes from the classifier first.

    Returns:
        `CollapseMetrics` without nc4. Classes have equal weight in μ_g and Σ_B; samples have equal weight in Σ_W.

    Raises:
        InputError: If a class has no samples or its mean equals μ_g, or if the classifier does not have shape (p, C) or
            (C, p), is square without a layout, is not finite, or is zero (values are not checked under JAX tracing).

    References:
        Papyan, Han & Donoho, arXiv:2008.08186; Nam, DPhil thesis (2024), 2.10 (the product form) and D.6 (where Σ_B
        must be replaced by its pseudo-inverse).

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
        remedy="give samples of each class, or number only the classes that occur",
    )
    m = moments.centred_means
    norms = xp.sqrt(_sum(m**2, 1))
    require(
        holds(xp.all(norms > _ROUNDING * xp.max(xp.abs(moments.means)))),
        "a class mean equals the mean of all class means",
        argument="moments",
        value=0.0,
        remedy="give features that differ between classes",
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
            "the classifier is zero" + (" after centring" if center_classifier else ""),
            argument="classifier",
            value=0.0,
            remedy="give a classifier whose weights differ between classes",
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
    """Count the samples of a batch on which the classifier and the nearest class mean disagree (NC4).

    NC4 requires a second pass over the samples: add the counts of all batches and divide by n. Without a bias, the
    classifier and the nearest class mean can disagree on uncentred features, even if these have collapsed to a perfect
    simplex.

    Cost: 4npC operations; memory for 2nC + np numbers.

    Args:
        moments: The result of `class_moments`, summed over all batches.
        features: H of the batch, shape (n, p).
        classifier: W, shape (p, C), with outputs = features @ W + bias; or its transpose.
        bias: Shape (C,); None for zeros.
        layout: As in `collapse_metrics`.

    Returns:
        The number of samples, as a scalar array in the precision of the moments. Ties are broken by the lowest class
        index.

    Raises:
        InputError: If shapes do not match, or values are not finite.

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
        f"features has {h.shape[1]} columns, but the class means have {p} entries",
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
    # ‖h − μ_c‖² without ‖h‖², which is common to all classes; centred, so that large means do not reduce precision.
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
    """Compute NC1 to NC4 of features on samples; they are zero for fully collapsed features.

    See `collapse_metrics` for NC1 to NC3. `nc4` is the fraction of samples on which the classifier and the nearest
    class mean disagree. For a stream of batches, use `class_moments`, `collapse_metrics` and
    `nearest_mean_disagreement`.

    Cost: 2np² + 12npC operations; memory for p² + 2np + 3nC numbers. No n × n matrix is formed.

    Args:
        features: H, the inputs of the last layer, shape (n, p), as a NumPy, JAX or PyTorch array.
        labels: Integer classes 0..C−1, shape (n,), from the same library.
        classifier: W, shape (p, C), with outputs = features @ W + bias; or its transpose. None omits nc3 and nc4.
        bias: Shape (C,); None for zeros.
        classes: Number of classes C. By default it is taken from the classifier, or is the largest label plus one.
        layout: "features_classes" for shape (p, C), or "classes_features" for (C, p), as in the weight of PyTorch's
            `Linear`. Required only if W is square; otherwise it is inferred from the shape.
        center_classifier: Whether nc3 subtracts the mean over classes from the classifier first.

    Raises:
        InputError: As for `class_moments`, `collapse_metrics` and `nearest_mean_disagreement`.

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
        f"features contains values above {largest:.0e}, which overflow {h.dtype} when squared",
        argument="features",
        value=str(h.dtype),
        remedy="rescale the features",
    )
    w = _oriented(classifier, h.shape[1], None, h, layout)
    moments = class_moments(features, labels, classes=int(w.shape[1]) if classes is None else classes)
    sampled = array_namespace(h).astype(moments.sizes > 0, h.dtype)
    if classes is None and not holds(array_namespace(h).all(sampled > 0)):
        present, shape = int(array_namespace(h).sum(sampled)), tuple(classifier.shape)
        raise InputError(
            f"classifier has shape {shape}, which implies {w.shape[1]} classes, but labels contains only {present}",
            argument="classifier",
            value=shape,
            remedy=f"give the weights of the last layer, of shape ({h.shape[1]}, {present}) or its transpose, or give "
            "samples of each class",
        )
    found = collapse_metrics(moments, w, layout="features_classes", center_classifier=center_classifier)
    disagree = nearest_mean_disagreement(moments, features, w, bias, layout="features_classes")
    return found._replace(nc4=disagree / moments.samples)


def _classes(labels: Any) -> int:
    try:
        return int(array_namespace(labels).max(labels)) + 1
    except TypeError:
        raise InputError(
            "the number of classes is unknown under JAX tracing",
            argument="classes",
            remedy="give the number of classes or the classifier",
        ) from None


def _oriented(classifier: Any, p: int, classes: int | None, like: Any, layout: Layout | None) -> Any:
    """Return the classifier as a matrix of shape (p, C) for either layout; C is arbitrary if `classes` is None."""
    array_namespace(like, classifier)
    w, _ = finite_matrix("classifier", classifier)
    shape = tuple(w.shape)
    wanted = f"({p}, {'C' if classes is None else classes})"
    require(
        layout is not None or shape[0] != shape[1],
        f"classifier has the square shape {shape}, so its layout is ambiguous",
        argument="layout",
        remedy='choose layout="features_classes" if the outputs are features @ classifier, or "classes_features" if '
        "the classifier is the weight of a torch.nn.Linear",
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

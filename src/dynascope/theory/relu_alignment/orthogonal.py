"""Loss staircase of a ReLU network on orthogonal inputs, with one jump for each sign of the targets."""

from __future__ import annotations

import numpy as np
from annotated_types import IsFinite
from jaxtyping import Float

from dynascope.results.staircase import Staircase
from dynascope.theory.assumptions import LARGE_OUTPUT_WEIGHTS, ONE_OUTPUT, ORTHOGONAL_SAMPLES, SMALL_START
from dynascope.theory.domain import covers
from dynascope.theory.relu_alignment.path import Inputs, OneColumn, single_output
from dynascope.validation import require, require_shape
from dynascope.validation.bounded import OpenFraction

__all__ = ["orthogonal_staircase"]

_THEORY = "early alignment of ReLU networks on orthogonal inputs"
_REFERENCE = (
    "E. Boursier, L. Pillaud-Vivien, N. Flammarion, Gradient flow dynamics of shallow ReLU networks for square loss "
    "and orthogonal inputs (arXiv 2206.00939)"
)
# Inputs whose cosine is below this value count as orthogonal.
_ORTHOGONAL = 1e-9
# Two jumps that are separated by fewer e-folds of growth overlap.
_SEPARATE_E_FOLDS = 4.0


@covers(
    network="two-layer ReLU, one output",
    data="orthogonal inputs",
    start="small",
    gives="times and levels of the two jumps",
    reference="arXiv:2206.00939",
    exact=False,
    assumes=(ONE_OUTPUT, ORTHOGONAL_SAMPLES, SMALL_START, LARGE_OUTPUT_WEIGHTS),
)
def orthogonal_staircase(
    inputs: Inputs,
    targets: OneColumn,
    *,
    scale: OpenFraction,
    first: IsFinite[Float[np.ndarray, "d width"]] | None = None,
    second: IsFinite[Float[np.ndarray, "width 1"]] | None = None,
) -> Staircase:
    """Predict the loss staircase (plateaus and jumps) of f(x) = Σ a_i relu(w_i·x) on inputs with x_i·x_j = 0.

    Under gradient flow, a neuron never becomes active on a sample on which it is initially inactive. It also becomes
    inactive on samples whose target has the opposite sign to its output weight. Let P be the set of samples on which
    the neuron is initially active and whose targets have the sign of its output weight. The neuron turns towards
    D_P/‖D_P‖, D_P = (1/n) Σ_P y_j x_j, and grows at the rate ‖D_P‖. When the first neurons reach a size of order one,
    the samples in their sets P are fitted and no longer contribute to the D_P of other neurons.

    If, for each sign, some neuron is initially active on all samples of that sign, there are two jumps, at
    t = log(1/scale)/‖D₊‖ and log(1/scale)/‖D₋‖. Otherwise, there are further, smaller jumps. Samples on which no neuron
    of their sign is active are never learned.

    Args:
        inputs: x, shape (n, d), with orthogonal rows.
        targets: y, shape (n,) or (n, 1).
        scale: Factor on the initial weights, between zero and one.
        first: Weights of the first layer at unit scale, shape (d, width). By default, one neuron of each sign is
            assumed to be active on all samples of that sign.
        second: Weights of the second layer at unit scale, shape (width, 1).

    Returns:
        The staircase. Its features are `input_feature`, D_P/‖D_P‖ over the samples learned at the jump, and
        `output_feature`, the sign of their targets. `times` include the time in which the first neurons grow to the
        size at which half of the drop is complete. They are exact up to an offset that does not grow with log(1/scale).

    Raises:
        InputError: If the inputs are not orthogonal, the weights have the wrong shape or are given for one layer only,
            a value is not finite, there are several outputs, all targets vanish, or the scale is not between zero and
            one.

    Assumptions: |a_i| ≥ ‖w_i‖, so that output weights keep their sign; otherwise the result carries a warning.

    References:
        Boursier, Pillaud-Vivien, Flammarion, arXiv:2206.00939.

    Example:
        >>> steps = orthogonal_staircase(np.diag([1.0, 2.0]), np.array([2.0, -0.5]), scale=1e-6)
        >>> steps.accelerated_times, steps.levels, steps.learned
        (array([1., 2.]), array([1.0625, 0.0625, 0. ]), ('the positive targets', 'the negative targets'))
    """
    x, y = inputs, single_output(inputs, targets, "targets")
    _require_orthogonal(x)
    require(
        (first is None) == (second is None),
        f"{'first' if second is None else 'second'} is given without {'second' if second is None else 'first'}",
        argument="second" if second is None else "first",
        remedy="give the weights of both layers, or of neither",
    )
    pulls = y[:, None] * x / len(y)
    learnable = np.any(pulls != 0, axis=1)
    warnings: list[str] = []
    if first is None or second is None:
        signs = np.array([sign for sign in (1.0, -1.0) if np.any(learnable & (sign * y > 0))])
        sets = learnable & (signs[:, None] * y > 0)
        sizes = np.ones(len(signs))
    else:
        require_shape("first", first, (x.shape[1], None))
        require_shape("second", second, (first.shape[1], 1))
        w, a = first.T, second[:, 0]
        signs = np.sign(a)
        sets = learnable & (x @ w.T > 0).T & (signs[:, None] * y > 0)
        if np.any(np.abs(a) < np.linalg.norm(w, axis=1) * (1 - _ORTHOGONAL)):
            warnings.append(
                "Some output weights are smaller than the norm of the input weights of their neuron. They may change "
                "sign before the neuron grows."
            )
        # A neuron with w·D_P/‖D_P‖ = p at t = 0 grows as (p + |a|)/2 times the exponential.
        drifts = sets @ pulls * signs[:, None]
        ahead = np.sum(w * drifts, axis=1) / np.maximum(np.linalg.norm(drifts, axis=1), np.finfo(float).tiny)
        sizes = np.where(sets.any(axis=1), (ahead + np.abs(a)) / 2, 0.0)
    return _staircase(x, y, pulls, learnable, signs, sets, sizes, scale, warnings)


def _staircase(
    x: np.ndarray,
    y: np.ndarray,
    pulls: np.ndarray,
    learnable: np.ndarray,
    signs: np.ndarray,
    sets: np.ndarray,
    sizes: np.ndarray,
    scale: float,
    warnings: list[str],
) -> Staircase:
    log_inverse_scale = -float(np.log(scale))
    unlearned = learnable.copy()
    clock, grown = 0.0, np.zeros(len(signs))
    accelerated, offsets, learned, features, outputs = [], [], [], [], []
    levels = [float(y @ y) / (2 * len(y))]
    while True:
        rates = np.linalg.norm((sets & unlearned) @ pulls, axis=1)
        if not rates.any():
            break
        durations = np.full(len(signs), np.inf)
        durations[rates > 0] = np.maximum(1 - grown[rates > 0], 0) / rates[rates > 0]
        fastest = int(np.argmin(durations))
        new_samples = sets[fastest] & unlearned
        direction = pulls[new_samples].sum(axis=0) * signs[fastest] / rates[fastest]
        clock += float(durations[fastest])
        grown = grown + rates * durations[fastest]
        accelerated.append(clock)
        # All neurons that are active on the same samples grow together.
        same_group = (signs == signs[fastest]) & np.all((sets & unlearned) == new_samples, axis=1) & (grown > 1 - 1e-9)
        curvature = np.mean((x @ direction) ** 2)
        full = np.log(rates[fastest] / curvature / np.sum(sizes[same_group] ** 2))
        # The strength grows as a logistic; half of the drop is reached at a fraction 1 − 1/√2 of the final strength.
        offsets.append((full + np.log(np.sqrt(2) - 1)) / (2 * rates[fastest]))
        word = "positive" if signs[fastest] > 0 else "negative"
        every = learnable & (signs[fastest] * y > 0)
        learned.append(
            f"the {word} targets"
            if np.array_equal(new_samples, every)
            else f"{new_samples.sum()} of the {word} targets"
        )
        features.append(direction)
        outputs.append([signs[fastest]])
        unlearned &= ~new_samples
        # Residuals of zero inputs, and those on which no neuron is active, remain.
        unfitted = unlearned | (~learnable & (y != 0))
        levels.append(float(np.sum(y[unfitted] ** 2)) / (2 * len(y)))
    if unlearned.any():
        warnings.append(
            f"{unlearned.sum()} of {len(y)} targets are not learned, because no neuron of their sign is active on them."
        )
    times = np.array(accelerated) * log_inverse_scale + offsets
    return Staircase(
        accelerated_times=np.array(accelerated),
        times=np.maximum.accumulate(np.maximum(times, 0.0)),
        levels=np.array(levels),
        learned=tuple(learned),
        slow=_slow(np.array(accelerated), log_inverse_scale),
        features={
            "input_feature": (("jump", "feature"), np.array(features).reshape(-1, x.shape[1])),
            "output_feature": (("jump", "target"), np.array(outputs).reshape(-1, 1)),
        },
        theory=_THEORY,
        reference=_REFERENCE,
        warnings=tuple(warnings),
    )


def _slow(accelerated: np.ndarray, log_inverse_scale: float) -> tuple[str, ...]:
    """Return a warning for each jump whose time is uncertain because a neighbouring jump is too close; else empty."""
    gaps = np.diff(accelerated) / accelerated[1:] * log_inverse_scale
    nearest = np.minimum(np.append(np.inf, gaps), np.append(gaps, np.inf))
    return tuple(
        f"only {gap:.1f} e-folds of growth separate this jump from its neighbour" if gap < _SEPARATE_E_FOLDS else ""
        for gap in nearest
    )


def _require_orthogonal(x: np.ndarray) -> None:
    lengths = np.linalg.norm(x, axis=1)
    units = x / np.where(lengths > 0, lengths, 1.0)[:, None]
    cosines = np.abs(units @ units.T) - np.diag(lengths > 0)
    largest = float(cosines.max(initial=0.0))
    require(
        largest < _ORTHOGONAL,
        f"inputs contains two samples with a cosine similarity of {largest:.3g}",
        argument="inputs",
        value=largest,
        remedy="give mutually orthogonal inputs (at most as many samples as dimensions)",
    )

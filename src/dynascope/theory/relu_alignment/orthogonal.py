"""The staircase of a ReLU network on orthogonal inputs: one jump for each sign of the targets."""

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
# Inputs whose cosine is below this are orthogonal up to rounding.
_ORTHOGONAL = 1e-9
# Two jumps closer than this many e-folds of growth run into each other.
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
    """Predict the staircase of f(x) = Σ a_i relu(w_i·x) trained by gradient flow on inputs with x_i·x_j = 0.

    A neuron never sees a datum on which it starts inactive, and loses those whose targets have the other sign than its
    output weight. So it turns to D_P/‖D_P‖, D_P = (1/n) Σ_P y_j x_j, over the set P of data on which it starts active
    and whose targets have its sign, and grows at the rate ‖D_P‖. When the first neurons reach order one all data of
    their P are fitted, and drop out of D_P for the others. With neurons that start active on all data of their sign
    there are two jumps, at t = log(1/scale)/‖D₊‖ and log(1/scale)/‖D₋‖; without them further, smaller ones. Data on
    which no neuron of their sign is active are never learned.

    Args:
        inputs: x, shape (n, d), with orthogonal rows.
        targets: y, shape (n,) or (n, 1).
        scale: Factor on the weights at the start, below one.
        first: Weights of the first layer at unit scale, shape (d, width). Without them some neuron of each sign is
            taken to be active on all data of that sign.
        second: Weights of the second layer at unit scale, shape (width, 1).

    Returns:
        The staircase. Its features are `input_feature`, D_P/‖D_P‖ over the data learned at the jump, and
        `output_feature`, their sign. The times at this scale add to the limit what the first neurons of the set need
        to grow to the size that halves the drop; they are known up to an offset that does not grow with log(1/scale).

    Raises:
        InputError: Inputs that are not orthogonal, weights that do not fit or of which only one layer is given, values
            that are not finite, several outputs, targets that vanish, or a scale that is not between zero and one.

    Assumptions: |a_i| ≥ ‖w_i‖, so that output weights keep their sign; other networks come with a warning.

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
        "the weights of one layer are given without those of the other",
        argument="second" if second is None else "first",
        remedy="give both, or neither",
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
                "Some output weights are smaller than the input weights of their neuron and may change sign before "
                "they grow."
            )
        # A neuron that starts with w·D_P/‖D_P‖ = p grows as (p + |a|)/2 times the exponential.
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
    left = learnable.copy()
    clock, grown = 0.0, np.zeros(len(signs))
    accelerated, offsets, learned, features, outputs = [], [], [], [], []
    levels = [float(y @ y) / (2 * len(y))]
    while True:
        rates = np.linalg.norm((sets & left) @ pulls, axis=1)
        if not rates.any():
            break
        waits = np.full(len(signs), np.inf)
        waits[rates > 0] = np.maximum(1 - grown[rates > 0], 0) / rates[rates > 0]
        hit = int(np.argmin(waits))
        news = sets[hit] & left
        direction = pulls[news].sum(axis=0) * signs[hit] / rates[hit]
        clock += float(waits[hit])
        grown = grown + rates * waits[hit]
        accelerated.append(clock)
        # All neurons that see the same data grow together.
        together = (signs == signs[hit]) & np.all((sets & left) == news, axis=1) & (grown > 1 - 1e-9)
        curvature = np.mean((x @ direction) ** 2)
        full = np.log(rates[hit] / curvature / np.sum(sizes[together] ** 2))
        # As a logistic in this direction, the loss has half dropped at the share 1 − 1/√2 of its full strength.
        offsets.append((full + np.log(np.sqrt(2) - 1)) / (2 * rates[hit]))
        word = "positive" if signs[hit] > 0 else "negative"
        every = learnable & (signs[hit] * y > 0)
        learned.append(f"the {word} targets" if np.array_equal(news, every) else f"{news.sum()} of the {word} targets")
        features.append(direction)
        outputs.append([signs[hit]])
        left &= ~news
        # Residuals that no neuron sees, and those of zero inputs, stay.
        unfitted = left | (~learnable & (y != 0))
        levels.append(float(np.sum(y[unfitted] ** 2)) / (2 * len(y)))
    if left.any():
        warnings.append(f"{left.sum()} of {len(y)} targets are not learned: no neuron of their sign is active on them.")
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
    """A jump that another one follows or precedes too closely does not have its own time."""
    gaps = np.diff(accelerated) / accelerated[1:] * log_inverse_scale
    beside = np.minimum(np.append(np.inf, gaps), np.append(gaps, np.inf))
    return tuple(
        f"only {gap:.1f} e-folds of growth separate it from its neighbour" if gap < _SEPARATE_E_FOLDS else ""
        for gap in beside
    )


def _require_orthogonal(x: np.ndarray) -> None:
    lengths = np.linalg.norm(x, axis=1)
    units = x / np.where(lengths > 0, lengths, 1.0)[:, None]
    cosines = np.abs(units @ units.T) - np.diag(lengths > 0)
    largest = float(cosines.max(initial=0.0))
    require(
        largest < _ORTHOGONAL,
        f"two inputs have a cosine of {largest:.3g}",
        argument="inputs",
        value=largest,
        remedy="pass inputs that are orthogonal to each other, at most as many as their dimension",
    )

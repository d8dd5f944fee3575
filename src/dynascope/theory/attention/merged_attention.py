"""Loss of linear attention with merged keys and queries, which stays on a plateau and then falls in a single drop."""

from __future__ import annotations

import numpy as np
import scipy

from dynascope.results.clock import time_unit
from dynascope.results.staircase import Staircase
from dynascope.theory.assumptions import SMALL_START
from dynascope.theory.attention.levels import AttentionModes, Heads, attention_modes
from dynascope.theory.domain import covers
from dynascope.theory.finite_answers import require_answer
from dynascope.theory.papers import ALTERNATING, ATTENTION
from dynascope.theory.units import in_units
from dynascope.validation import require, require_shape
from dynascope.validation.bounded import FiniteNumbers, OpenFraction

__all__ = ["merged_attention_staircase"]

_THEORY = "alternating gradient flow of linear attention"
_REFERENCE = f"{ATTENTION}; {ALTERNATING}"
# Fraction of its final size below which P grows without saturation.
_SMALL = 1e-6


@covers(
    network="linear attention, merged key and query",
    data="in-context regression, population",
    start="small",
    gives="time and levels of the single drop",
    reference="arXiv:2501.16265",
    exact=False,
    assumes=(SMALL_START.costing("the time has a relative error of up to 0.5/log(1/scale)"),),
)
def merged_attention_staircase(
    covariance: FiniteNumbers,
    context_length: float,
    *,
    scale: OpenFraction,
    neurons: Heads | None = None,
) -> Staircase:
    """Predict the single loss drop of linear attention with merged keys and queries on in-context regression.

    Each head (v, K) is homogeneous of degree 2. Its utility v⟨K, Σ²⟩ has a single maximum, at K ∝ Σ². Under gradient
    flow, all heads therefore grow along one direction at the rate ‖Σ²‖_F and learn all modes at once:

        t = log(1/α)/‖Σ²‖_F + O(1).

    The heads then evolve like a single head with w' = ⟨Q, M⟩, Q' = w M, where M is the correlation of the context with
    the residual (`context_correlation`). The time at which this head crosses half of the drop determines the constant.

    Args:
        covariance: Σ, symmetric and positive semidefinite, shape (d, d), or the d variances of independent inputs.
        context_length: Number of examples N ≥ 1; ∞ is allowed.
        scale: Factor α of the initial weights, between 0 and 1.
        neurons: Initial heads at unit scale, as rows (v | K, flattened by rows), shape (H, d² + 1). If not given, a
            single head with v = 1 and K = Σ²/‖Σ²‖_F.

    Returns:
        A staircase with a single jump and homogeneity degree 2.

    Raises:
        InputError: If N is below one, Σ is not symmetric, positive semidefinite and nonzero, the scale is out of range,
            or the heads are not finite, have the wrong shape or have no growing component.

    Source: arXiv:2501.16265, section 4; the constant is derived here.

    Example:
        >>> steps = merged_attention_staircase([1.0, 0.5], np.inf, scale=1e-6)
        >>> steps.accelerated_times.round(3), steps.levels
        (array([0.97]), array([0.75, 0.  ]))
    """
    modes = attention_modes(covariance, context_length)
    unit = time_unit(scale)
    with np.errstate(over="ignore"):
        rate = require_answer(float(np.linalg.norm(modes.variances**2)), {"covariance": covariance})
    size, warnings = 1.0, ()
    if neurons is None:
        warnings = ("The initial heads are not given: the time is that of one aligned head.",)
    else:
        d = len(modes.axes)
        heads = np.asarray(neurons)
        require_shape("neurons", heads, (None, d**2 + 1))
        square = ((modes.axes * modes.variances**2) @ modes.axes.T).ravel() / rate
        size = float(np.linalg.norm(heads[:, 0] + heads[:, 1:] @ square)) / 2
        require(
            size > 0,
            "no head has a growing component",
            argument="neurons",
            value=size,
            remedy="pass random initial weights at unit scale",
        )
    levels = modes.levels(range(len(modes.variances)))[[0, -1]]
    return Staircase(
        accelerated_times=np.array([1 / rate]),
        times=np.array([(unit - np.log(size)) / rate + _merged_passage(modes, rate)]),
        levels=levels,
        learned=("all directions at once",),
        slow=("",),
        features={},
        theory=_THEORY,
        reference=_REFERENCE,
        warnings=warnings,
    )


def _merged_passage(modes: AttentionModes, rate: float) -> float:
    """Return the time from unit size to half of the drop for a head (w, Q), given the growth rate of small heads."""
    return _half_drop(modes.variances, modes.gains, rate) + np.log(_SMALL / np.sqrt(modes.gains[0])) / rate


@in_units("variances", "gains", variances="v", gains="g", rate="v^2", gives="v^-2")
def _half_drop(variances: np.ndarray, gains: np.ndarray, rate: float) -> float:
    """Integrate a small head along the modes until half of the drop is complete, and return the time."""
    start = _SMALL / np.sqrt(gains[0])
    drops = variances**2 / gains

    def velocity(_: float, state: np.ndarray) -> np.ndarray:
        left = variances**2 * (1 - gains * state[0] * state[1:])
        return np.concatenate([[state[1:] @ left], state[0] * left])

    def above_half(_: float, state: np.ndarray) -> float:
        return drops @ (1 - gains * state[0] * state[1:]) ** 2 - drops.sum() / 2

    above_half.terminal = True
    solution = scipy.integrate.solve_ivp(
        velocity,
        (0.0, 1e9 / rate),
        start * np.concatenate([[1.0], variances**2 / rate]),
        method="LSODA",
        rtol=1e-10,
        atol=1e-10 * start,
        events=above_half,
    )
    return float(solution.t_events[0][0])

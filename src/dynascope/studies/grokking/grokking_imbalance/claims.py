"""Claims about the time to grok of upstream networks, with runs that never generalise."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from dynascope.comparison import Claim, claim_on_mean
from dynascope.studies.grokking.grokking_imbalance.experiment import SETTINGS

__all__ = ["DECIDING", "decided_by_bounds", "imbalance_claims"]

_NAMES = {each: each.lower().replace(", ", "_").replace("-", "_") for each in SETTINGS}
DECIDING = tuple(f"{name}_upstream" for name in _NAMES.values())

_PLURALS = {"two-layer": "two-layer networks", "transformer": "transformers"}
_VALUE = "The value is the mean of ln(steps at α / steps at α = 1)."


def imbalance_claims(
    found: Mapping[str, np.ndarray], relative_scales: Sequence[float], resolutions: Sequence[float]
) -> list[Claim]:
    """Evaluate the claims; each value is the mean over seeds of a natural logarithm of a ratio of steps.

    For upstream networks, the logarithm is averaged over all α > 1, for downstream networks over all α < 1.

    A threshold is reached between two evaluations, and the later one is recorded. Each interval is extended by the
    largest change of the mean that this allows.

    A run that does not generalise enters with its last step, which is a lower bound on its time to grok. A claim is
    undecided if the true ratios may differ from these values in the direction that would change its outcome.

    Args:
        found: `test_step`, `generalised`, `train_step` and `fitted`, shape (settings, relative scales, seeds).
        relative_scales: The relative scales α in increasing order, which include one.
        resolutions: Number of steps between two evaluations, for each of the `SETTINGS`.
    """
    alphas = np.array(relative_scales)
    even = int(np.argmin(np.abs(alphas - 1)))
    claims = []
    for place, (setting, name) in enumerate(_NAMES.items()):
        kind, optimizer = setting.split(", ")
        upstream, downstream = alphas > 1, alphas < 1
        for quantity, reached, suffix, words in (
            ("test_step", "generalised", "upstream", "grok earlier"),
            ("train_step", "fitted", "upstream_fit", "fit the training pairs earlier"),
        ):
            steps, known = (found[each][place] for each in (quantity, reached))
            statement = f"With {optimizer}, upstream {_PLURALS[kind]} (α > 1) {words}."
            runs = steps[even], steps[upstream], known[even], known[upstream]
            claims.append(_earlier(f"{name}_{suffix}", statement, *runs, resolutions[place]))
        steps, known = found["test_step"][place], found["generalised"][place]
        statement = f"With {optimizer}, downstream {_PLURALS[kind]} (α < 1) grok later."
        runs = steps[even], steps[downstream], known[even], known[downstream]
        claims.append(_earlier(f"{name}_downstream", statement, *runs, resolutions[place], later=True))
    return claims


def _earlier(
    name: str,
    statement: str,
    even: np.ndarray,
    changed: np.ndarray,
    even_known: np.ndarray,
    changed_known: np.ndarray,
    resolution: float,
    *,
    later: bool = False,
) -> Claim:
    bound = {"least": 0.0} if later else {"most": 0.0}
    ratios = np.mean(_logarithm(changed) - _logarithm(even), axis=0)
    claim = claim_on_mean(name, f"{statement} {_VALUE}", ratios, **bound)
    down, up = (np.mean(_logarithm(each) - _logarithm(each - resolution)) for each in (changed, even))
    low, high = claim.interval
    claim = dataclasses.replace(claim, low=low - float(down), high=high + float(up))
    # The true ratio can only be larger if a changed run is censored, and only be smaller if an even run is.
    return decided_by_bounds(claim, int((~changed_known).sum()), int((~even_known).sum()))


def _logarithm(steps: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(steps, 1))


def decided_by_bounds(claim: Claim, above: int, below: int) -> Claim:
    """Return the claim, or an undecided claim if unreached thresholds could change its outcome.

    Args:
        claim: A claim that a logarithm of a ratio is at most or at least zero.
        above: Number of runs whose unknown steps can only raise the value.
        below: Number of runs whose unknown steps can only lower it.

    Example:
        >>> slower = Claim("fast", "It is fast.", 0.5, low=0.2, high=0.8, most=0.0)
        >>> decided_by_bounds(slower, above=2, below=0).outcome, decided_by_bounds(slower, above=0, below=1).outcome
        ('does not hold', 'undecided')
    """
    low, high = claim.interval
    positive, negative = low > 0 and not below, high < 0 and not above
    if positive or negative or not (above or below):
        return claim
    side = "larger" if not below else "smaller" if not above else "larger or smaller"
    runs = f"{above + below} runs" if above + below > 1 else "one run"
    reason = f"{runs} did not reach the threshold, so the true value may be {side} than the measured one"
    return dataclasses.replace(claim, unknown=reason)

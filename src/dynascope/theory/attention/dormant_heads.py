"""Growth of small heads of linear attention up to their successive blow-ups."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from jaxtyping import Float

__all__ = ["Activation", "activations"]

# Norm, relative to the largest initial norm, at which a head counts as blown up; the relative error of t is then 1e-12.
_LARGE = 1e12
# Heads above this relative norm at the first blow-up count as blowing up at the same time.
_TIED = 1e6
_PRECISION = 1e-11
# Number of e-folds of the slowest mode after which the integration stops without a blow-up.
_PATIENCE = 1e4
# Coordinates and relative gaps between eigenvalues below these fractions are rounding errors.
_ROUND_OFF = 1e-12
_DEGENERATE = 1e-9
# The loss (1 − x)² of a mode with learned fraction x is halved at x = 1 − √½, where v = y/gain^⅓ with y³ = x.
_HALF = (1 - np.sqrt(0.5)) ** (1 / 3)
_HALF_DELAY = 1 / _HALF - _HALF**2 / 2 * scipy.special.hyp2f1(1, 2 / 3, 5 / 3, _HALF**3)  # 1/y − ∫₀ y/(1 − y³) dy


@dataclasses.dataclass(frozen=True)
class Activation:
    """Activation of one or several heads, which grow from near zero and learn a mode.

    Attributes:
        heads: Indices of the heads, counted from 0.
        mode: Index of the learned mode in `rates`.
        direction: Learned unit vector in the eigenbasis: an eigenvector, or a combination of degenerate ones.
        blow_up: Time s = α·t at which the weights would diverge.
        half_learned: Time s at which half of the drop in the loss is complete, at the given scale.
        degenerate: Whether several modes have the same eigenvalue as this mode.
        mixing: Largest ratio, over the other unlearned modes, of the head's weights along that mode to its weights
            along this mode, just before the jump. Each ratio is divided by the relative gap 1 − m′/m between the rates
            m′ and m of the two modes, because the mixture decays slowly if the gap is small.
        crowding: Largest norm of the other heads that are still small just before the jump, at the given scale.
    """

    heads: tuple[int, ...]
    mode: int
    direction: Float[np.ndarray, " d"]
    blow_up: float
    half_learned: float
    degenerate: bool
    mixing: float
    crowding: float


def activations(
    v: Float[np.ndarray, " heads"],
    k: Float[np.ndarray, "heads d"],
    q: Float[np.ndarray, "heads d"],
    *,
    rates: Float[np.ndarray, " d"],
    gains: Float[np.ndarray, " d"],
    scale: float,
) -> list[Activation]:
    """Integrate v' = Σ m k q, k' = m v q, q' = m v k for all heads up to their blow-ups, in the eigenbasis of Σ.

    With V = ∫ v dt, each coordinate is k ± q = (k ± q)(0) exp(±m V). For any number of inputs, a head is therefore a
    particle in one dimension, V″ = Σ m/4 [(k + q)(0)² exp(2 m V) − (k − q)(0)² exp(−2 m V)]. All heads are integrated
    in the variable ∫ max ‖θ‖ dt, in which the first blow-up is approached exponentially. The head that blows up learns
    the unlearned mode with the largest rate m. This mode is then removed for the other heads.

    At a scale α > 0, the leading corrections are included. A balanced head v = k = q = a learns according to a' = m
    a²(1 − γ a³), with the gain γ. It completes half of the drop in the loss at t = s/α − 1.2535 γ^⅓/m, where s is the
    time of the blow-up. For the other heads, the integral of m (1 − γ a³) is the same as if the mode were removed at
    t = s/α − γ^⅓/m. The remaining error is of order α^(2 − m′/m) and is due to the component of the head along the next
    mode, whose rate is m′.

    Args:
        v: Values of the heads at unit scale.
        k: Keys of the heads in the eigenbasis.
        q: Queries of the heads in the eigenbasis.
        rates: Rate m = λ² > 0 of each mode, in decreasing order.
        gains: Gain γ = (1 + 1/N) λ + tr Σ/N of each mode, for contexts of N examples.
        scale: Factor α of the initial weights, or zero for the limit of small weights.

    Returns:
        The activations in order of time. Some modes are missing if there are too few heads or the remaining heads do
        not grow.
    """
    # Heads at a stationary point are excluded, because rounding errors would make them grow.
    names = np.flatnonzero((v != 0) | (np.abs(k * q @ rates) > _ROUND_OFF * (np.abs(k * q) @ rates)))
    if not len(names):
        return []
    v, k, q = v[names], k[names], q[names]
    norm = np.sqrt(np.max(v**2 + np.sum(k**2 + q**2, axis=1)))
    unit = 1 / (norm * rates[0])
    heads = _Heads(v / norm, (k + q) / norm, (k - q) / norm, rates / rates[0])
    modes, axes = np.arange(len(rates)), np.eye(len(rates))
    clock, found = 0.0, []
    while len(names) and len(modes):
        path = _path_to_blow_up(heads)
        if path is None:
            break
        end = path(1.0)
        leader = int(np.argmax(end.norms))
        growing = np.abs(end.growing(leader))
        first = int(np.argmax(growing > _ROUND_OFF * growing.max()))
        group = np.flatnonzero(np.abs(heads.rates - heads.rates[first]) <= _DEGENERATE * heads.rates[first])
        rotation = _rotation(end.growing(leader)[group])
        mode = modes[group[0]]
        delay = scale * gains[mode] ** (1 / 3) / rates[mode]
        off = _before(path, end.time - delay / unit)
        growing = np.abs(off.growing(leader))
        others, gaps = np.delete(np.arange(len(modes)), group), np.abs(1 - heads.rates / heads.rates[first])
        left = end.norms <= _TIED
        blow_up = (clock + end.time) * unit
        found.append(
            Activation(
                heads=tuple(names[~left].tolist()),
                mode=int(mode),
                direction=rotation[0] @ axes[group],
                blow_up=blow_up,
                half_learned=blow_up - _HALF_DELAY * delay,
                degenerate=len(group) > 1,
                mixing=float(np.max(growing[others] / gaps[others], initial=0.0) / np.linalg.norm(growing[group])),
                crowding=float(scale * norm * off.norms[left].max(initial=0.0)),
            )
        )
        axes[group] = rotation @ axes[group]
        off.plus[:, group], off.minus[:, group] = off.plus[:, group] @ rotation.T, off.minus[:, group] @ rotation.T
        unlearned = np.arange(len(modes)) != group[0]
        clock, names, modes, axes = clock + off.time, names[left], modes[unlearned], axes[unlearned]
        heads = _Heads(
            off.v[left], off.plus[np.ix_(left, unlearned)], off.minus[np.ix_(left, unlearned)], heads.rates[unlearned]
        )
    return found


@dataclasses.dataclass(frozen=True)
class _Heads:
    """State of the heads at one time: v (H,), k + q and k − q (H, d), along modes with the rates (d,)."""

    v: np.ndarray
    plus: np.ndarray
    minus: np.ndarray
    rates: np.ndarray
    time: float = 0.0

    @property
    def norms(self) -> np.ndarray:
        """Return ‖θ‖ of each head, restricted to the unlearned modes."""
        return np.sqrt(self.v**2 + np.sum(self.plus**2 + self.minus**2, axis=1) / 2)

    def growing(self, head: int) -> np.ndarray:
        """Return the combination of k and q that grows at the blow-up: k + q, or k − q if v is negative."""
        return self.plus[head] if self.v[head] > 0 else self.minus[head]

    def moved(self, time: float, travel: np.ndarray, v: np.ndarray) -> _Heads:
        """Return the heads after ∫ v dt has increased by `travel`."""
        exponent = np.outer(travel, self.rates)
        return _Heads(v, _grown(self.plus, exponent), _grown(self.minus, -exponent), self.rates, time)


def _grown(values: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    # A single exponential avoids overflow of the factors, and keeps zeros at zero.
    with np.errstate(divide="ignore"):
        return np.sign(values) * np.exp(np.log(np.abs(values)) + exponent)


def _path_to_blow_up(start: _Heads) -> Callable[[float], _Heads] | None:
    """Integrate the heads to the first blow-up; None if no head blows up.

    The result is a function that maps a fraction of ∫ max ‖θ‖ dt (1 at the blow-up) to the heads.
    """
    count = len(start.v)
    with np.errstate(divide="ignore"):
        amplitudes = np.log(np.abs(np.concatenate([start.plus, start.minus], axis=1)))
    signed = np.concatenate([start.rates, -start.rates])

    def heads(state: np.ndarray) -> _Heads:
        return start.moved(state[0], state[1 : count + 1], state[count + 1 :])

    def squares(state):
        """Return the squares of k + q and k − q of each head, and the largest ‖θ‖."""
        squared = np.exp(2 * (amplitudes + state[1 : count + 1, None] * signed))
        return squared, np.sqrt((state[count + 1 :] ** 2 + squared.sum(axis=1) / 2).max())

    def velocity(_, state):
        squared, norm = squares(state)
        return np.concatenate([[1.0], state[count + 1 :], squared @ signed / 4]) / norm

    def blown_up(_, state):
        return np.log(squares(state)[1] / _LARGE)

    blown_up.terminal = True
    if not start.norms.max() > 0:
        return None
    solution = scipy.integrate.solve_ivp(
        velocity,
        (0.0, _PATIENCE / start.rates.min()),
        np.concatenate([[0.0], np.zeros(count), start.v]),
        method="DOP853",
        rtol=_PRECISION,
        atol=_PRECISION,
        events=blown_up,
        dense_output=True,
    )
    if solution.status != 1:
        return None
    return lambda fraction: heads(solution.sol(fraction * solution.t[-1]))


def _before(path: Callable[[float], _Heads], time: float) -> _Heads:
    """Return the heads at a given time, at most the time of the blow-up."""
    if time <= 0:
        return path(0.0)
    if path(1.0).time <= time:
        return path(1.0)
    root: Any = scipy.optimize.brentq(lambda fraction: path(fraction).time - time, 0.0, 1.0, xtol=1e-15)
    return path(float(root))


def _rotation(vector: np.ndarray) -> np.ndarray:
    """Return an orthogonal matrix whose first row is the direction of the vector."""
    rotation = np.linalg.qr(np.column_stack([vector, np.eye(len(vector))]))[0].T
    return rotation * np.where(np.arange(len(vector)) == 0, np.sign(rotation[0] @ vector), 1.0)[:, None]

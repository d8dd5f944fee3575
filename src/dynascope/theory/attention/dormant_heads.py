"""Small heads of linear attention, up to the times at which one after the other blows up."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from jaxtyping import Float

__all__ = ["Activation", "activations"]

# A head has blown up once its norm is this many times the largest initial one: then t is exact to 1e-12 of its scale.
_LARGE = 1e12
# Heads that are this large when the first blows up do so with it.
_TIED = 1e6
_PRECISION = 1e-11
# E-folds of the slowest growth after which a stage without a blow-up has none.
_PATIENCE = 1e4
# Coordinates and gaps between eigenvalues below this fraction are round-off.
_ROUND_OFF = 1e-12
_DEGENERATE = 1e-9
# A mode is half learned, in the loss 1 − 2x + x² of its fraction x, at x = 1 − √½; there v = y/gain^⅓ with y³ = x.
_HALF = (1 - np.sqrt(0.5)) ** (1 / 3)
_HALF_DELAY = 1 / _HALF - _HALF**2 / 2 * scipy.special.hyp2f1(1, 2 / 3, 5 / 3, _HALF**3)  # less ∫ y/(1 − y³) from 0


@dataclasses.dataclass(frozen=True)
class Activation:
    """One head, or several at once, that leave the neighbourhood of zero and learn a mode.

    Attributes:
        heads: Which, counted from 0.
        mode: Position of the eigenvalue among those given.
        direction: Unit vector in the eigenbasis that was learned; an eigenvector, or a mixture of degenerate ones.
        blow_up: Time s = α·t at which the weights would become infinite.
        half_learned: Time s at which the loss passes the middle of the drop, at the given scale.
        degenerate: Whether the direction was one of several with the same eigenvalue.
        mixing: Weight that the head has along another unlearned mode, relative to that along its own, when it is about
            to learn; divided by the relative gap 1 − m′/m of the rates, by which the mixture decays afterwards.
        crowding: Largest norm, at the given scale, that any other small head has at that moment.
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
    """Follow the heads v' = Σ m k q, k' = m v q, q' = m v k to the blow-up of each, in the eigenbasis of the data.

    With V = ∫ v dt each coordinate is k ± q = (k ± q)(0) exp(±m V), so a head is a particle in one dimension,
    V″ = Σ m/4 [(k + q)(0)² exp(2 m V) − (k − q)(0)² exp(−2 m V)], however many inputs there are. All heads are followed
    with the clock ∫ max ‖θ‖ dt, in which the first blow-up is approached exponentially. It learns the unlearned mode of
    largest rate m; that mode is dropped for the others.

    At a scale α > 0 the first corrections are included. The balanced head v = k = q = a learns by a' = m a²(1 − γ a³),
    γ the gain; against the blow-up at s this passes half the drop 1.2535 γ^⅓/m earlier in t, and turns the mode off for
    the others, in the sense of the integral of m (1 − γ a³), γ^⅓/m earlier. What remains is of order α^(2 − m′/m), from
    the weight that the head has along the next mode of rate m′.

    Args:
        v: Values of the heads at unit scale.
        k: Their keys in the eigenbasis.
        q: Their queries in the eigenbasis.
        rates: m = λ² > 0, decreasing.
        gains: γ = (1 + 1/N) λ + tr Σ/N, the inverse of what P becomes along the mode.
        scale: α, or zero for the limit.

    Returns:
        The activations in order; fewer than modes if the heads run out or the remaining ones do not grow.
    """
    # A head at rest stays there, though rounding would move it.
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
        turn = _turn(end.growing(leader)[group])
        mode = modes[group[0]]
        delay = scale * gains[mode] ** (1 / 3) / rates[mode]
        off = _before(path, end.time - delay / unit)
        seen = np.abs(off.growing(leader))
        others, gaps = np.delete(np.arange(len(modes)), group), np.abs(1 - heads.rates / heads.rates[first])
        left = end.norms <= _TIED
        blow_up = (clock + end.time) * unit
        found.append(
            Activation(
                heads=tuple(names[~left].tolist()),
                mode=int(mode),
                direction=turn[0] @ axes[group],
                blow_up=blow_up,
                half_learned=blow_up - _HALF_DELAY * delay,
                degenerate=len(group) > 1,
                mixing=float(np.max(seen[others] / gaps[others], initial=0.0) / np.linalg.norm(seen[group])),
                crowding=float(scale * norm * off.norms[left].max(initial=0.0)),
            )
        )
        axes[group] = turn @ axes[group]
        off.plus[:, group], off.minus[:, group] = off.plus[:, group] @ turn.T, off.minus[:, group] @ turn.T
        unlearned = np.arange(len(modes)) != group[0]
        clock, names, modes, axes = clock + off.time, names[left], modes[unlearned], axes[unlearned]
        heads = _Heads(
            off.v[left], off.plus[np.ix_(left, unlearned)], off.minus[np.ix_(left, unlearned)], heads.rates[unlearned]
        )
    return found


@dataclasses.dataclass(frozen=True)
class _Heads:
    """v (H,), k + q and k − q (H, d) of the heads, along modes with the rates (d,), at a time."""

    v: np.ndarray
    plus: np.ndarray
    minus: np.ndarray
    rates: np.ndarray
    time: float = 0.0

    @property
    def norms(self) -> np.ndarray:
        """‖θ‖ of each head within the unlearned modes."""
        return np.sqrt(self.v**2 + np.sum(self.plus**2 + self.minus**2, axis=1) / 2)

    def growing(self, head: int) -> np.ndarray:
        """What grows of k and q as the head blows up: k + q or, if v is negative, k − q."""
        return self.plus[head] if self.v[head] > 0 else self.minus[head]

    def moved(self, time: float, travel: np.ndarray, v: np.ndarray) -> _Heads:
        """The heads at another time, when ∫ v dt has grown by the travel."""
        exponent = np.outer(travel, self.rates)
        return _Heads(v, _grown(self.plus, exponent), _grown(self.minus, -exponent), self.rates, time)


def _grown(values: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    # In one exponential, so that neither factor overflows, and a zero stays zero.
    with np.errstate(divide="ignore"):
        return np.sign(values) * np.exp(np.log(np.abs(values)) + exponent)


def _path_to_blow_up(start: _Heads) -> Callable[[float], _Heads] | None:
    """The heads as a function of the fraction of the clock ∫ max ‖θ‖ dt at which the first blows up; None if none."""
    count = len(start.v)
    with np.errstate(divide="ignore"):
        amplitudes = np.log(np.abs(np.concatenate([start.plus, start.minus], axis=1)))
    signed = np.concatenate([start.rates, -start.rates])

    def heads(state: np.ndarray) -> _Heads:
        return start.moved(state[0], state[1 : count + 1], state[count + 1 :])

    def squares(state):
        """Of k + q and k − q, by head; and the largest ‖θ‖."""
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
    """The heads at a time before the blow-up."""
    if time <= 0:
        return path(0.0)
    if path(1.0).time <= time:
        return path(1.0)
    root: Any = scipy.optimize.brentq(lambda fraction: path(fraction).time - time, 0.0, 1.0, xtol=1e-15)
    return path(float(root))


def _turn(vector: np.ndarray) -> np.ndarray:
    """An orthogonal matrix whose first row is the direction of the vector."""
    turn = np.linalg.qr(np.column_stack([vector, np.eye(len(vector))]))[0].T
    return turn * np.where(np.arange(len(vector)) == 0, np.sign(turn[0] @ vector), 1.0)[:, None]

"""The path of successive saddles of diagonal linear networks, by an active set that is updated from jump to jump."""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy
from jaxtyping import Float

from dynascope.errors import InputError
from dynascope.validation import require

__all__ = ["ROUND_OFF", "SaddlePath", "successive_saddles"]

# A multiplier below this fraction of the largest initial one is round-off of the least-squares solution.
ROUND_OFF = 1e-10
# Two hitting times this close (relative) are one event of a tie.
_TIE = 1e-9
# An active input whose multiplier is below this share of the largest initial one needs no further refinement.
_REFINED = 1e-13
# Squared sine of the angle between an input and the active ones below which a basis of both loses its digits.
_DEPENDENT = 1e-8


@dataclasses.dataclass(frozen=True)
class SaddlePath:
    """Jumps between saddles, in order.

    Attributes:
        times: Time of each of J jumps in units of the time in which an integral of one is reached, shape (J,).
        levels: Loss L = ½ E(y − βᵀx)² of each saddle, shape (J + 1,); the first is that of β = 0.
        maps: β at each saddle, shape (J + 1, d).
        integrals: S at the end of the stay at the saddle before each jump, shape (J + 1, d), the first at time zero.
        ties: The inputs that hit their boundary at the same time, once for each tie.
    """

    times: Float[np.ndarray, " jump"]
    levels: Float[np.ndarray, " saddle"]
    maps: Float[np.ndarray, "saddle d"]
    integrals: Float[np.ndarray, "saddle d"]
    ties: tuple[np.ndarray, ...]


def successive_saddles(inputs: Float[np.ndarray, "n d"], targets: Float[np.ndarray, " n"]) -> SaddlePath:
    """Follow S' = E[x (y − βᵀx)], where β jumps to a constrained least-squares solution when an Sᵢ reaches ±1.

    At a saddle β = argmin E(y − βᵀx)² with βᵢ ≥ 0 where Sᵢ = 1, βᵢ ≤ 0 where Sᵢ = −1, and βᵢ = 0 elsewhere. From one
    saddle to the next nearly always a single input enters, so that an orthonormal basis of the active ones is extended
    at the cost of its entries. Where active inputs depend on each other, or several enter at once, the problem
    is solved afresh.

    Assumptions: general position (each constrained problem has one solution).

    References:
        S. Pesme, N. Flammarion, Saddle-to-saddle dynamics in diagonal linear networks, arXiv 2304.00488, Algorithm 1.

    Example:
        >>> path = successive_saddles(np.eye(2), np.array([4.0, -1.0]))
        >>> path.times, path.maps[-1]
        (array([0.5, 2. ]), array([ 4., -1.]))
    """
    x, y, samples = inputs, targets, len(inputs)
    dimension = x.shape[1]
    if samples > dimension:
        # The path depends on the data only through xᵀx and xᵀy, which a triangular factor carries without squaring.
        triangular = np.asarray(np.linalg.qr(np.column_stack([x, y]), mode="r"))
        x, y = triangular[:, :-1].copy(), triangular[:, -1].copy()
    active = _ActiveSet(x, y)
    possible = np.linalg.norm(x, axis=0).max() * np.linalg.norm(y)
    require(
        active.largest > ROUND_OFF * possible,
        "the targets have no correlation with any input",
        argument="targets",
        value=0.0,
        remedy="pass targets that vary with the inputs",
    )
    clock, integral = 0.0, np.zeros(dimension)
    times, maps, integrals, ties = [], [active.beta.copy()], [integral], []
    for _ in range(100 * dimension + 1):
        moving = ((active.beta == 0) & (active.size > active.negligible)).nonzero()[0]
        if not moving.size:
            break
        velocity, start = active.multiplier[moving], integral[moving]
        ahead = np.copysign(1.0, velocity)
        waits = (ahead - start) / velocity
        wait = waits.min()
        hit = waits <= wait * (1 + _TIE)
        integral = integral.copy()
        integral[moving] = np.where(hit, ahead, (start + wait * velocity).clip(-1.0, 1.0))
        clock += wait
        entering = moving[hit]
        if entering.size > 1:
            ties.append(entering)
        active.enter(entering, integral)
        times.append(clock)
        maps.append(active.beta.copy())
        integrals.append(integral)
    else:
        raise InputError(
            f"the path did not end after {len(times)} jumps",
            argument="inputs",
            value=inputs.shape,
            remedy="remove inputs that are combinations of others",
        )
    residuals = y - np.array(maps) @ x.T
    levels = np.sum(residuals**2, axis=1) / (2 * samples)
    return SaddlePath(np.array(times) * samples, levels, np.array(maps), np.array(integrals), tuple(ties))


class _ActiveSet:
    """The constrained least squares at a saddle, with combinations of its active inputs that are orthonormal.

    The rows of a square matrix M hold the combinations, so that MᵀM is the inverse Gram matrix of the active inputs.

    Attributes:
        beta: Shape (d,), zero where inactive.
        multiplier: xᵀ(y − xβ), shape (d,), taken from the data so that errors of M do not add up.
        size: Its absolute values.
        largest: The largest multiplier at β = 0.
        negligible: A multiplier of at most this size is round-off.
    """

    def __init__(self, x: np.ndarray, y: np.ndarray):
        self.x, self.y, self.gram = x, y, x.T @ x
        dimension = x.shape[1]
        self.beta = np.zeros(dimension)
        self._measure()
        self.largest = self.size.max()
        self.negligible = ROUND_OFF * self.largest
        self._order, self._count = np.zeros(dimension, dtype=int), 0
        self._basis, self._current = np.zeros((dimension, dimension)), True

    def enter(self, entering: np.ndarray, integral: np.ndarray) -> None:
        """Move β to the solution with the signs of S where |S| = 1, after these inputs got there."""
        if entering.size > 1 or not self._current or not self._exchange(int(entering[0]), integral):
            guess = self.beta != 0
            guess[entering] = True
            self.beta = _constrained_least_squares(self.x, self.y, integral, guess)
            self._measure()
            self._orthonormalise_afresh()

    def _exchange(self, entering: int, integral: np.ndarray) -> bool:
        """Active-set steps of Lawson and Hanson from the present β; false where they lose their digits."""
        walls = np.abs(integral) == 1.0
        for _ in range(3 * len(self.beta)):
            if not self._add(entering):
                return False
            while True:
                order, basis = self._active
                present = self.beta[order]
                target = present + (basis @ self.multiplier[order]) @ basis
                wrong = target * integral[order] < 0
                if not wrong.any():
                    break
                # As far as the first input that would change its sign, which is then inactive.
                shares = np.where(wrong, present / np.where(wrong, present - target, 1.0), np.inf)
                leaving = int(shares.argmin())
                self.beta[order] = present + shares[leaving] * (target - present)
                self.beta[order[leaving]] = 0.0
                self._remove(leaving)
                self._measure()
            self.beta[order] = target
            self._measure()
            if not self._refine():
                return False
            if np.count_nonzero(walls) == self._count:
                return True
            outward = np.where(walls & (self.beta == 0), self.multiplier * integral, 0.0)
            entering = int(outward.argmax())
            if outward[entering] <= self.negligible:
                return True
        return False

    @property
    def _active(self) -> tuple[np.ndarray, np.ndarray]:
        return self._order[: self._count], self._basis[: self._count, : self._count]

    def _measure(self) -> None:
        self.multiplier = self.x.T @ (self.y - self.x @ self.beta)
        self.size = np.abs(self.multiplier)

    def _refine(self) -> bool:
        order, basis = self._active
        for _ in range(3):
            error = self.size[order].max()
            if error <= _REFINED * self.largest:
                return True
            self.beta[order] += (basis @ self.multiplier[order]) @ basis
            self._measure()
        return bool(error <= self.negligible)

    def _add(self, entering: int) -> bool:
        """Make one more input active, by Gram and Schmidt; false if it depends on the active ones."""
        order, basis = self._active
        shared = basis @ self.gram[entering][order]
        power = self.gram[entering, entering]
        own = power - shared @ shared
        if own <= _DEPENDENT * power:
            return False
        last, length = self._count, np.sqrt(own)
        self._basis[last, :last] = (shared @ basis) / -length
        self._basis[:last, last] = 0.0
        self._basis[last, last] = 1 / length
        self._order[last] = entering
        self._count += 1
        return True

    def _remove(self, position: int) -> None:
        """Reflect the rows so that only the last holds this input, and drop that row."""
        last = self._count - 1
        order, basis = self._active
        mirror = basis[:, position].copy()
        mirror[last] += np.copysign(np.linalg.norm(mirror), mirror[last])
        basis -= np.multiply.outer(2 / (mirror @ mirror) * mirror, mirror @ basis)
        order[position], basis[:, position] = order[last], basis[:, last].copy()
        self._count = last

    def _orthonormalise_afresh(self) -> None:
        """Find M for the present support, unless its inputs depend on each other."""
        self._count = 0
        self._current = all(self._add(int(active)) for active in self.beta.nonzero()[0])


def _constrained_least_squares(x: np.ndarray, y: np.ndarray, integral: np.ndarray, guess: np.ndarray) -> np.ndarray:
    """The β of smallest squared error with the signs of S where |S| = 1, and zero elsewhere.

    Nearly always the support is the guess, which the optimality conditions certify; only else it is searched for.
    """
    free = np.flatnonzero(np.abs(integral) == 1.0)
    signed = x[:, free] * integral[free]
    support = guess[free]
    size = _least_squares(signed, y, support)
    push = signed.T @ (y - signed @ size)
    if size.min() < 0 or push[~support].max(initial=0.0) > ROUND_OFF * np.abs(x.T @ y).max():
        searched, _ = scipy.optimize.nnls(signed, y)
        size = _least_squares(signed, y, searched > 1e-12 * searched.max())
        size = searched if size.min() < 0 else size
    beta = np.zeros(len(integral))
    beta[free] = size * integral[free]
    return beta


def _least_squares(x: np.ndarray, y: np.ndarray, support: np.ndarray) -> np.ndarray:
    solution = np.zeros(x.shape[1])
    solution[support] = np.linalg.lstsq(x[:, support], y, rcond=None)[0]
    return solution

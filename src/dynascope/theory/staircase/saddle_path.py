"""Path of successive saddles of diagonal linear networks, by an active-set method."""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy
from jaxtyping import Float

from dynascope.errors import InputError
from dynascope.validation import require

__all__ = ["ROUND_OFF", "SaddlePath", "successive_saddles"]

# Multipliers below this fraction of the largest initial multiplier are rounding errors of the least-squares solution.
ROUND_OFF = 1e-10
# Hitting times with a smaller relative difference count as simultaneous (a tie).
_TIE = 1e-9
# Active multipliers below this fraction of the largest initial multiplier need no further refinement.
_REFINED = 1e-13
# Squared sine of the angle between an input and the span of the active inputs below which a common basis is inaccurate.
_DEPENDENT = 1e-8


@dataclasses.dataclass(frozen=True)
class SaddlePath:
    """Jumps between successive saddles.

    Attributes:
        times: Time of each of J jumps, in units in which the boundary is |Sᵢ| = 1, shape (J,).
        levels: Loss L = ½ E(y − βᵀx)² of each saddle, beginning with β = 0, shape (J + 1,).
        maps: β at each saddle, shape (J + 1, d).
        integrals: S at time zero and at each jump, shape (J + 1, d).
        ties: Inputs that hit their boundary simultaneously, one array per tie.
    """

    times: Float[np.ndarray, " jump"]
    levels: Float[np.ndarray, " saddle"]
    maps: Float[np.ndarray, "saddle d"]
    integrals: Float[np.ndarray, "saddle d"]
    ties: tuple[np.ndarray, ...]


def successive_saddles(inputs: Float[np.ndarray, "n d"], targets: Float[np.ndarray, " n"]) -> SaddlePath:
    """Integrate S' = E[x (y − βᵀx)], where β jumps to a constrained least-squares solution when an Sᵢ reaches ±1.

    At a saddle, β = argmin E(y − βᵀx)² with βᵢ ≥ 0 if Sᵢ = 1, βᵢ ≤ 0 if Sᵢ = −1, and βᵢ = 0 otherwise. Usually a single
    input enters at each jump, and the orthonormal basis of the active inputs is extended by one vector. If active
    inputs are linearly dependent, or several enter simultaneously, the problem is solved from scratch.

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
        # The path depends only on xᵀx and xᵀy; a triangular factor of the data represents both without squaring.
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
            remedy="remove inputs that are linear combinations of others",
        )
    residuals = y - np.array(maps) @ x.T
    levels = np.sum(residuals**2, axis=1) / (2 * samples)
    return SaddlePath(np.array(times) * samples, levels, np.array(maps), np.array(integrals), tuple(ties))


class _ActiveSet:
    """Constrained least-squares problem at a saddle, with an orthonormal basis of its active inputs.

    Row j of a square matrix M contains the coefficients of basis vector j with respect to the active inputs, so MᵀM is
    the inverse Gram matrix of the active inputs.

    Attributes:
        beta: β, shape (d,), zero for inactive inputs.
        multiplier: xᵀ(y − xβ), shape (d,), computed from the data so that errors of M do not accumulate.
        size: Absolute values of the multipliers.
        largest: Largest absolute multiplier at β = 0.
        negligible: Bound below which a multiplier is a rounding error.
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
        """Update β to the constrained solution after the given inputs have reached |Sᵢ| = 1."""
        if entering.size > 1 or not self._current or not self._exchange(int(entering[0]), integral):
            guess = self.beta != 0
            guess[entering] = True
            self.beta = _constrained_least_squares(self.x, self.y, integral, guess)
            self._measure()
            self._orthonormalise_support()

    def _exchange(self, entering: int, integral: np.ndarray) -> bool:
        """Perform Lawson–Hanson active-set steps from the current β; return False if they lose accuracy."""
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
                # Step until the first coefficient reaches zero; its input becomes inactive.
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
        """Activate an input by a Gram–Schmidt step; return False if it depends linearly on the active inputs."""
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
        """Reflect the rows so that only the last row contains this input, and drop the last row."""
        last = self._count - 1
        order, basis = self._active
        mirror = basis[:, position].copy()
        mirror[last] += np.copysign(np.linalg.norm(mirror), mirror[last])
        basis -= np.multiply.outer(2 / (mirror @ mirror) * mirror, mirror @ basis)
        order[position], basis[:, position] = order[last], basis[:, last].copy()
        self._count = last

    def _orthonormalise_support(self) -> None:
        """Compute M for the current support, unless its inputs are linearly dependent."""
        self._count = 0
        self._current = all(self._add(int(active)) for active in self.beta.nonzero()[0])


def _constrained_least_squares(x: np.ndarray, y: np.ndarray, integral: np.ndarray, guess: np.ndarray) -> np.ndarray:
    """Minimise the squared error over β with the sign of Sᵢ if |Sᵢ| = 1, and βᵢ = 0 otherwise.

    The guessed support is nearly always correct; the optimality conditions verify it. If these conditions fail,
    non-negative least squares determines the support.
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

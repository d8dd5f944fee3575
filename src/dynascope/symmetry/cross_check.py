"""Cross-checks the symmetries read from a program against the symmetries of its gradients."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np

from dynascope.symmetry.charge import Charge
from dynascope.symmetry.discover import Discovery
from dynascope.symmetry.find_symmetries import SymmetryStructure
from dynascope.symmetry.parameters import arrays_by_path
from dynascope.symmetry.ranks import rank
from dynascope.validation import require

__all__ = ["CrossCheck", "cross_check"]


@dataclasses.dataclass(frozen=True)
class CrossCheck:
    """Numbers of independent charges found by two methods, separately and together.

    Attributes:
        structural: Independent charges found in the program, including elements that no output depends on.
        numerical: Independent charges found from gradients.
        together: Independent charges of both methods combined.
    """

    structural: int
    numerical: int
    together: int

    @property
    def agrees(self) -> bool:
        """Whether both methods find the same charges."""
        return self.structural == self.numerical == self.together

    def __str__(self) -> str:
        if self.agrees:
            return f"both methods find the same {self.together} charges"
        program, gradients = self.together - self.numerical, self.together - self.structural
        only = f"{program} only in the program and {gradients} only in gradients"
        return f"{self.together} independent charges: {only}"


def cross_check(structural: SymmetryStructure, numerical: Discovery, params: Any) -> CrossCheck:
    """Compare the charges found by `find_symmetries` and by `discover`, through their ranks at a random point.

    Args:
        structural: The result of `find_symmetries`.
        numerical: The result of `discover` for the same function.
        params: The parameter tree that both functions received.

    Raises:
        InputError: If the number of parameters differs.

    References:
        Abide by the Law and Follow the Flow, arXiv:2307.00144.

    Example:
        >>> import numpy as np
        >>> from dynascope.symmetry import discover, find_symmetries
        >>> given = lambda p, x: x * p["a"] * p["b"], {"a": np.ones(1), "b": np.ones(1)}, np.ones((3, 1))
        >>> print(cross_check(find_symmetries(*given), discover(*given, levels=0), given[1]))
        both methods find the same 1 charges
    """
    arrays = {path: each for path, each in arrays_by_path(params).items() if _is_floating(each)}
    size = sum(each.size for each in arrays.values())
    require(
        size == numerical.theta.size,
        f"params contains {size} numbers, but discover analysed {numerical.theta.size}",
        argument="params",
        value=size,
        remedy="give the parameters that discover received",
    )
    cuts = np.cumsum([each.size for each in arrays.values()])[:-1]
    pieces = zip(arrays.items(), np.split(numerical.theta, cuts), strict=True)
    theta = {path: piece.reshape(each.shape) for (path, each), piece in pieces}
    tree = jax.tree_util.tree_map_with_path(lambda path, leaf: theta.get(jax.tree_util.keystr(path), leaf), params)
    rows = [_flat(each, tuple(arrays)) for charge in structural.symmetries for each in _directions(charge, tree)]
    unused = np.concatenate([np.full(each.size, path in structural.unused) for path, each in arrays.items()])
    read = np.array([*rows, *np.eye(size)[unused]]).reshape(-1, size)
    seen = np.concatenate([numerical.generators.at(numerical.theta), np.eye(size)[numerical.dead]])
    return CrossCheck(*(rank(each, "the charges") for each in (read, seen, np.concatenate([read, seen]))))


def _directions(charge: Charge, theta: Any) -> list[Any]:
    """Return the gradient of each charge."""
    if charge.kind != "matrix":
        return [charge.direction(theta, row) for row in np.eye(charge.units)]
    blocks, found = charge.units // charge.block, []
    for block in range(blocks):
        for i, j in zip(*np.triu_indices(charge.mixed), strict=True):
            weights = np.zeros((blocks, charge.mixed, charge.mixed))
            weights[block, i, j] = weights[block, j, i] = 1.0
            found.append(charge.direction(theta, weights))
    return found


def _flat(tree: Any, paths: tuple[str, ...]) -> np.ndarray:
    arrays = arrays_by_path(tree)
    return np.concatenate([np.ravel(arrays[path]) for path in paths])


def _is_floating(array: Any) -> bool:
    return jax.numpy.issubdtype(array.dtype, np.floating)

"""Framework-independent computation of the kernel, block by block, from derivatives of the outputs."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from dynascope.probes.kernel.contraction import contract_layer, contract_signals
from dynascope.probes.kernel.conventions import Contraction
from dynascope.probes.kernel.dense_uses import DenseUse
from dynascope.probes.kernel.examples import count_rows, rows_of
from dynascope.validation import array_namespace

__all__ = ["Differentiable", "join_blocks"]

_MIRRORED = {"full": (2, 3, 0, 1), "diagonal": (1, 0, 2), "trace": (1, 0)}


@dataclasses.dataclass(frozen=True)
class Differentiable(abc.ABC):
    """A function of parameters and examples; subclasses implement its derivatives for one framework.

    Attributes:
        model: The function to be differentiated; its `reduction` selects outputs.
        rates: A learning rate, or an array of them, for each parameter; None for unit rates.
        uses: The products in which dense weights are used.
        leaves: The framework's name for arrays, in the plural.
        choices: Groups of exact algorithms in order of preference; within a group, the fastest is chosen.
        join: `join_blocks`, possibly compiled.
    """

    model: Any
    rates: Any
    uses: tuple[DenseUse, ...]
    leaves: ClassVar[str]
    choices: ClassVar[tuple[tuple[str, ...], ...]]
    join: ClassVar[Callable[..., Any]]

    @property
    @abc.abstractmethod
    def parameters(self) -> Sequence[Any]:
        """The arrays with respect to which gradients are computed."""

    @abc.abstractmethod
    def signals(self, block: Any, uses: tuple[DenseUse, ...], places: tuple[int, ...]) -> tuple[dict, dict]:
        """Compute activations and signals of dense weights, and Jacobians of other parameters, for a block.

        Args:
            block: n examples.
            uses: The products in which dense weights are used.
            places: Indices of the other parameters.

        Returns:
            {place: (h (n, p, g, k), D (n, c, p, g, m))} for the dense weights, and {place: ∂f_a(x_i)/∂θ (n, c, size)}
            for the other parameters.
        """

    @abc.abstractmethod
    def by_columns(self, x: Any, other: Any, contraction: Contraction) -> Any:
        """Compute J (η J'ᵀe) for every unit vector e.

        The gradient of each output of each example is pushed forward through all examples.
        """

    @abc.abstractmethod
    def projected(self, block: Any, *, draws: int, seed: int) -> Any:
        """Compute J √η r for Gaussian directions r that depend only on the seed and the shapes, shape (n, c, draws)."""

    def reduced(self, reduction: str | tuple[int, ...]) -> Differentiable:
        """Return the same function with a subset of its outputs, or with their sum."""
        return dataclasses.replace(self, model=dataclasses.replace(self.model, reduction=reduction))

    def kernel(self, algorithm: str, x: Any, other: Any, contraction: Contraction, length: int) -> Any:
        """Compute the kernel by an exact algorithm; if `other` is None, half of it is computed and mirrored."""
        rows = self.blocks(x, length)
        columns = rows if other is None else self.blocks(other, length)
        found = {}
        for i, one in enumerate(rows):
            for j in range(i if other is None else 0, len(columns)):
                two = None if other is None and i == j else columns[j]
                found[i, j] = self.between(algorithm, one, two, contraction)
        if len(found) == 1:
            return found[0, 0]
        return self.join(found, count_rows(x), count_rows(x if other is None else other), contraction)

    def blocks(self, inputs: Any, length: int) -> list[Any]:
        """Split the examples into blocks; the last block can be shorter, or padded with any examples."""
        return [rows_of(inputs, slice(start, start + length)) for start in range(0, count_rows(inputs), length)]

    def between(self, algorithm: str, one: Any, two: Any, contraction: Contraction) -> Any:
        """Compute the kernel between two blocks; the second is None if it equals the first."""
        if algorithm == "products":
            return self.by_columns(one, two, contraction)
        if algorithm in ("jacobian", "layerwise"):
            return self.from_jacobians(one, two, contraction, together=algorithm == "jacobian")
        dense = {use.parameter for use in self.uses}
        places = tuple(place for place in range(len(self.parameters)) if place not in dense)
        first = self.signals(one, self.uses, places)
        second = first if two is None else self.signals(two, self.uses, places)
        return self.from_signals(first, second, contraction)

    def from_jacobians(self, x: Any, other: Any, contraction: Contraction, *, together: bool) -> Any:
        """Compute J diag(η) J'ᵀ for all parameters together, or for one at a time, which needs less memory."""
        every = range(len(self.parameters))
        total: Any = 0.0
        for places in [every] if together else [[place] for place in every]:
            (first, second), total = self.in_turn((x, other), total)
            one = self._jacobians(places, first)
            two = one if second is None else self._jacobians(places, second)
            total = total + contract_signals(one, self._weighted(two, places), contraction)
        return total

    def from_signals(self, one: Any, two: Any, contraction: Contraction) -> Any:
        """Compute J diag(η) J'ᵀ without gradients of dense weights; `two` is `one` if the blocks are the same."""
        (layers, rest), (other_layers, other_rest) = one, two
        total: Any = 0.0
        for place in list(layers):
            # Release the memory of a layer before the next one.
            layer = layers.pop(place)
            other = layer if two is one else other_layers.pop(place)
            (layer, other), total = self.in_turn((layer, other), total)
            part = contract_layer(*layer, *other, contraction)
            total = total + (part if self.rates is None else self.rates[place] * part)
        for place, jacobian in rest.items():
            total = total + contract_signals(jacobian, self._weighted(other_rest[place], [place]), contraction)
        return total

    def in_turn(self, needed: Any, total: Any) -> tuple[Any, Any]:
        """Return the arrays for the next layer; a subclass can make the compiler finish the partial sum first."""
        return needed, total

    def sketch(self, x: Any, other: Any, contraction: Contraction, length: int, *, draws: int, seed: int) -> Any:
        """Compute (1/q) Σ_r (Jr)(J'r)ᵀ for q random directions r."""

        def projected(inputs: Any) -> Any:
            parts = [self.projected(block, draws=draws, seed=seed) for block in self.blocks(inputs, length)]
            return array_namespace(*parts).concat(parts)[: count_rows(inputs)]

        one = projected(x)
        return contract_signals(one, one if other is None else projected(other), contraction) / draws

    def _jacobians(self, places: Sequence[int], block: Any) -> Any:
        """Compute ∂f_a(x_i)/∂θ for the parameters with these indices, shape (n, c, p)."""
        found = self.signals(block, (), tuple(places))[1]
        return array_namespace(*found.values()).concat([found[place] for place in places], axis=-1)

    def _weighted(self, jacobian: Any, places: Sequence[int]) -> Any:
        """Compute J diag(η) for the parameters with these indices."""
        if self.rates is None:
            return jacobian
        xp = array_namespace(jacobian)
        spread = [xp.broadcast_to(self.rates[place], self.parameters[place].shape).reshape(-1) for place in places]
        return jacobian * xp.concat(spread)


def join_blocks(found: dict[tuple[int, int], Any], n: int, n_other: int, contraction: Contraction) -> Any:
    """Join blocks into one array without padding; missing blocks below the diagonal are mirrored."""
    xp = array_namespace(found[0, 0])
    last, last_other = max(found)
    across = 2 if contraction == "full" else 1

    def block(i: int, j: int) -> Any:
        return found[i, j] if (i, j) in found else xp.permute_dims(found[j, i], _MIRRORED[contraction])

    rows = [xp.concat([block(i, j) for j in range(last_other + 1)], axis=across) for i in range(last + 1)]
    whole = xp.concat(rows)[:n]
    return whole[:, :, :n_other] if contraction == "full" else whole[:, :n_other]

"""The random hierarchy model: strings that a random grammar derives from class labels."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge
from jaxtyping import Float, Int

from dynascope.errors import InputError
from dynascope.tasks.hierarchy.productions import checked_productions, derived, drawn_productions, parsed
from dynascope.tasks.labelled import Labelled
from dynascope.validation import checked, require, require_room
from dynascope.validation.bounded_scalars import PositiveInt, Seed

__all__ = ["RandomHierarchy"]

_MOST_STRINGS = 2**62  # strings are numbered by 64-bit integers
_LISTED = 2**24


@checked
@dataclasses.dataclass(frozen=True, eq=False)
class RandomHierarchy:
    """A grammar with L levels of random production rules, which derives strings of s^L symbols from n_c labels.

    At level L, each label has m productions, which are tuples of s symbols. At each lower level l = L − 1, …, 1, each
    of the v symbols has m productions. A string is derived from a label by choosing one production for every node, and
    the productions of level 1 are the string. All productions of a level are different, so a string has one derivation
    and one label. The number of strings is

        P_max = n_c m^((s^L − 1)/(s − 1)).

    Productions of the same symbol are synonyms. Strings are integer arrays of shape (n, s^L), and derivations are
    numbered from 0 to P_max − 1, label by label.

    Attributes:
        symbols: Number v of symbols.
        classes: Number n_c of labels.
        multiplicity: Number m of productions of each symbol, with m max(v, n_c) ≤ v^s.
        branching: Number s of symbols in a production, at least 2.
        depth: Number L of levels.
        seed: Seed of the productions, which are drawn uniformly without repetition.
        rules: The productions instead of random ones, from level L to level 1: arrays of shape (n_c, m, s) and, for the
            other levels, (v, m, s).

    Raises:
        InputError: If m max(v, n_c) > v^s, if there are more than 2^62 strings, if there are fewer than two symbols,
            labels or symbols in a production, or if the rules have the wrong shape, an unknown symbol or a repeated
            production.

    References:
        Cagnetta et al., arXiv:2307.02129, section 2.

    Example:
        >>> hierarchy = RandomHierarchy(symbols=4, classes=4, multiplicity=4, depth=3)
        >>> hierarchy.length, hierarchy.number_of_strings, hierarchy.critical_samples
        (8, 65536, 256)
        >>> train, test = hierarchy.split(1000, 200)
        >>> train.inputs.shape, test.inputs.shape
        ((1000, 8, 4), (200, 8, 4))
    """

    symbols: Annotated[int, Ge(2)] = 4
    classes: Annotated[int, Ge(2)] = 4
    multiplicity: PositiveInt = 4
    branching: Annotated[int, Ge(2)] = 2
    depth: PositiveInt = 3
    seed: Seed = 0
    rules: Sequence[Any] | None = None

    def __post_init__(self):
        largest = max(self.symbols, self.classes)
        most = self.symbols**self.branching // largest
        remedy = f"choose at most {most}, because a level has {self.symbols}^{self.branching} tuples at most"
        value = self.multiplicity
        require(value <= most, f"multiplicity is {value}", argument="multiplicity", value=value, remedy=remedy)
        remedy = "choose a smaller depth, multiplicity or branching, so that there are at most 2^62 strings"
        small = self.depth * math.log2(self.branching) < 16 and self.number_of_strings <= _MOST_STRINGS
        require(small, f"depth is {self.depth}", argument="depth", value=self.depth, remedy=remedy)
        self.productions  # noqa: B018 -- checks the rules

    @property
    def length(self) -> int:
        """Number d = s^L of symbols in a string."""
        return self.branching**self.depth

    @property
    def number_of_strings(self) -> int:
        """Number P_max of strings."""
        return self.classes * self._derivations_per_label

    @property
    def critical_samples(self) -> int:
        """Number P_c = n_c m^L of training strings at which correlations of tuples and labels exceed sampling noise.

        The variance of Pr(label | symbol of level 1) over symbols is about v/(n_c² m^(L − 1)) for v = n_c. The variance
        of its estimate from P strings is about v m/(n_c P). Both are equal at P = P_c.
        """
        return self.classes * self.multiplicity**self.depth

    @functools.cached_property
    def productions(self) -> tuple[Int[np.ndarray, "_ m s"], ...]:
        """The productions from level L to level 1, each of shape (n_c, m, s) or (v, m, s)."""
        parents = [self.classes] + [self.symbols] * (self.depth - 1)
        shapes = [(each, self.multiplicity, self.branching) for each in parents]
        if self.rules is not None:
            return checked_productions(self.rules, shapes, self.symbols)
        return drawn_productions(shapes, self.symbols, np.random.default_rng(self.seed))

    def strings(self, derivations: Any = None) -> Int[np.ndarray, "n d"]:
        """Derive the strings with the given numbers.

        Args:
            derivations: Numbers from 0 to P_max − 1, shape (n,); None for all strings.

        Raises:
            InputError: If a number is out of range, or if all strings do not fit into memory.

        Example:
            >>> RandomHierarchy(symbols=2, classes=2, multiplicity=1, depth=1, rules=[[[[0, 1]], [[1, 1]]]]).strings()
            array([[0, 1],
                   [1, 1]])
        """
        if derivations is None:
            require_room(self.number_of_strings * self.length, depth=self.depth)
            derivations = np.arange(self.number_of_strings)
        rest = np.asarray(derivations)
        require(
            rest.ndim == 1 and rest.dtype.kind in "iu" and bool(np.all((rest >= 0) & (rest < self.number_of_strings))),
            "derivations contains values that are not numbers of derivations",
            argument="derivations",
            value=rest.shape,
            remedy=f"give integers from 0 to {self.number_of_strings - 1}, shape (n,)",
        )
        return derived(self.productions, *np.divmod(rest, self._derivations_per_label))

    def derivations(self, strings: Any) -> Int[np.ndarray, " n"]:
        """Parse strings from the bottom up and return the number of the derivation of each string.

        Args:
            strings: Symbols, shape (n, d).

        Raises:
            InputError: If the shape is wrong, or if the grammar does not derive a string.

        Example:
            >>> hierarchy = RandomHierarchy()
            >>> hierarchy.derivations(hierarchy.strings([5, 60_000])).tolist()
            [5, 60000]
        """
        symbols = np.asarray(strings)
        require(
            symbols.ndim == 2 and symbols.shape[1] == self.length and symbols.dtype.kind in "iu",
            f"strings has shape {symbols.shape}",
            argument="strings",
            value=symbols.shape,
            remedy=f"give integers of shape (n, {self.length})",
        )
        found = parsed(self.productions, symbols, self.symbols)
        if found is None:
            raise InputError(
                "the grammar does not derive some of the strings",
                argument="strings",
                remedy="give strings of this hierarchy, such as those returned by `strings`",
            )
        return found[0] * self._derivations_per_label + found[1]

    def labels(self, strings: Any) -> Int[np.ndarray, " n"]:
        """Return the label of each string, shape (n,).

        Args:
            strings: Symbols, shape (n, d).

        Raises:
            InputError: If the shape is wrong, or if the grammar does not derive a string.

        Example:
            >>> hierarchy = RandomHierarchy()
            >>> hierarchy.labels(hierarchy.strings([0, 20_000])).tolist()
            [0, 1]
        """
        return self.derivations(strings) // self._derivations_per_label

    @checked
    def exchange_synonyms(self, strings: Any, level: PositiveInt, *, seed: Seed = 0) -> Int[np.ndarray, "n d"]:
        """Choose the productions of all nodes of one level again, uniformly, and keep the label and all other choices.

        A new production of level l > 1 contains other symbols of level l − 1. The numbers of their productions are
        kept, so the strings below these nodes change as well.

        Args:
            strings: Symbols, shape (n, d).
            level: Level l from 1, the level of the string's own tuples, to L, the level of the label.
            seed: Seed of the draw.

        Raises:
            InputError: If the level does not exist, or if the grammar does not derive a string.

        Example:
            >>> hierarchy = RandomHierarchy()
            >>> strings = hierarchy.strings([0, 20_000])
            >>> hierarchy.labels(hierarchy.exchange_synonyms(strings, 3)).tolist()
            [0, 1]
        """
        remedy = f"choose a level from 1 to {self.depth}"
        require(level <= self.depth, f"level is {level}", argument="level", value=level, remedy=remedy)
        number, position = self.derivations(strings), self.depth - level
        low = self.multiplicity ** sum(self._nodes[position + 1 :])
        count = self.multiplicity ** self._nodes[position]
        kept = number - number // low % count * low
        return self.strings(kept + np.random.default_rng(seed).integers(count, size=len(number)) * low)

    def encode(self, strings: Int[np.ndarray, "n d"]) -> Float[np.ndarray, "n d v"]:
        """Encode each symbol as a one-hot vector, shape (n, d, v).

        Args:
            strings: Symbols, shape (n, d).

        Example:
            >>> RandomHierarchy(symbols=2, classes=2, multiplicity=2).encode(np.array([[0, 1]])).tolist()
            [[[1.0, 0.0], [0.0, 1.0]]]
        """
        return (np.asarray(strings)[..., None] == np.arange(self.symbols)).astype(float)

    @checked
    def sample(self, samples: PositiveInt, *, seed: Seed = 0) -> Labelled:
        """Draw different strings with their labels, uniformly.

        Args:
            samples: Number n of strings, from 2 to P_max.
            seed: Seed of the draw.

        Returns:
            Data with one-hot inputs, shape (n, d, v).

        Raises:
            InputError: If there are fewer than two or more than P_max strings.

        Example:
            >>> RandomHierarchy().sample(100).inputs.shape
            (100, 8, 4)
        """
        self._require_strings("samples", samples, self.number_of_strings)
        return self._labelled(self._draw(samples, seed))

    @checked
    def split(self, samples: PositiveInt, test_samples: PositiveInt, *, seed: Seed = 0) -> tuple[Labelled, Labelled]:
        """Draw training and test data without a common string.

        With at most 2^24 strings, larger training sets of a seed contain the smaller ones.

        Args:
            samples: Number of training strings, at least 2.
            test_samples: Number of test strings, at least 2.
            seed: Seed of the draw.

        Raises:
            InputError: If either part has fewer than two strings, or if both together exceed P_max.

        Example:
            >>> train, test = RandomHierarchy().split(100, 50)
            >>> train.samples, test.samples
            (100, 50)
        """
        self._require_strings("test_samples", test_samples, self.number_of_strings - 2)
        self._require_strings("samples", samples, self.number_of_strings - test_samples)
        drawn = self._draw(samples + test_samples, seed)
        return self._labelled(drawn[test_samples:]), self._labelled(drawn[:test_samples])

    def _draw(self, samples: int, seed: int) -> np.ndarray:
        draw, total = np.random.default_rng([self.seed, seed]), self.number_of_strings
        if total <= _LISTED:  # larger training sets of a seed then contain the smaller ones
            return draw.permutation(total)[:samples]
        return draw.choice(total, samples, replace=False)

    def _labelled(self, derivations: np.ndarray) -> Labelled:
        v, c, m, s = self.symbols, self.classes, self.multiplicity, self.branching
        return Labelled(
            self.encode(self.strings(derivations)),
            derivations // self._derivations_per_label,
            tuple(f"class {label}" for label in range(c)),
            "random hierarchy",
            (f"Strings of a random hierarchy with v = {v}, n_c = {c}, m = {m}, s = {s} and L = {self.depth}.",),
        )

    @property
    def _nodes(self) -> list[int]:
        """Numbers of nodes from level L to level 1."""
        return [self.branching**k for k in range(self.depth)]

    @property
    def _derivations_per_label(self) -> int:
        return self.multiplicity ** sum(self._nodes)

    def _require_strings(self, name: str, count: int, most: int) -> None:
        remedy = f"choose from 2 to {most} of the {self.number_of_strings} strings"
        require(2 <= count <= most, f"{name} is {count}", argument=name, value=count, remedy=remedy)

"""Multitask sparse parity: many parities of a few bits, some asked for far more often than others.

The data on which scaling laws and emergence are studied: each skill is learned at a time, a number of samples and a
number of neurons of its own, and the sum of many such steps is a power law.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import jax
import numpy as np
from annotated_types import Ge, Interval
from jax import Array
from jaxtyping import Float, Int

from dynascope.tasks.expectation import Expectation
from dynascope.tasks.parity.draws import ParitySample, draw
from dynascope.tasks.parity.skills import SkillStrength, measure_skills, skill_frequencies
from dynascope.tasks.stream import Stream
from dynascope.tasks.task import Task
from dynascope.validation import checked, is_traced, require, require_kind, require_room
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt, Seed

__all__ = ["ParityPopulation", "SparseParity"]

_MOST_BITS = 16
_MOST_NUMBERS = 2**27  # one gigabyte in float64


class ParityPopulation(NamedTuple):
    """All n = n_s 2^n_b inputs of a multitask parity, as NumPy arrays.

    Attributes:
        inputs: Shape (n, n_s + n_b).
        targets: Shape (n, 1).
        skill: Number of the skill, counted from 0, shape (n,).
        weights: Probability P(k)/2^n_b of each input, shape (n,).
    """

    inputs: Float[np.ndarray, "n d"]
    targets: Float[np.ndarray, "n 1"]
    skill: Int[np.ndarray, " n"]
    weights: Float[np.ndarray, " n"]


@checked
@dataclasses.dataclass(frozen=True)
class SparseParity(Stream):
    """A mixture of n_s skills, each the parity of its own m of n_b bits.

    Skill k comes with probability P(k) ∝ k^−(α+1), the bits x are uniform and independent, the input is
    [one-hot(k), x], and the target y = S g_k(x) = S (−1)^(Σ_{j∈M_k} x_j).

    An instance can be hashed, so that it can be a static argument of a compiled function.

    Attributes:
        skills: n_s.
        bits: n_b.
        relevant_bits: m, the bits on which each skill depends.
        exponent: α > 0.
        target_scale: S > 0.
        subsets: "exclusive", where skill k owns the bits (k−1)m … km − 1, or "random", where each skill draws its m
            bits at random and skills may share some.
        seed: Seed of the random subsets.

    Raises:
        InputError: A number out of range, more relevant bits than bits, or too few bits for exclusive subsets.

    References:
        Nam et al., arXiv:2404.17563, and Nam, DPhil thesis (2024), chapter 4, for exclusive subsets; Michaud et al.,
        arXiv:2303.13506, for random ones.

    Example:
        >>> parity = SparseParity(skills=2, bits=4, relevant_bits=2, target_scale=1.0)
        >>> parity.input_dimension, parity.relevant.tolist()
        (6, [[0, 1], [2, 3]])
    """

    skills: PositiveInt = 5
    bits: PositiveInt = 32
    relevant_bits: PositiveInt = 3
    exponent: PositiveFloat = 0.6
    target_scale: PositiveFloat = 5.0
    subsets: Literal["exclusive", "random"] = "exclusive"
    seed: Seed = 0

    name: ClassVar[str] = "sparse parity"

    def __post_init__(self):
        require(
            self.relevant_bits <= self.bits,
            f"relevant_bits is {self.relevant_bits} and bits {self.bits}",
            argument="relevant_bits",
            value=self.relevant_bits,
            remedy="choose no more relevant bits than bits",
        )
        needed = self.skills * self.relevant_bits
        require(
            self.subsets == "random" or needed <= self.bits,
            f"{self.skills} skills with {self.relevant_bits} bits each need {needed}, and bits is {self.bits}",
            argument="bits",
            value=self.bits,
            remedy="choose more bits, fewer skills or random subsets",
        )

    @property
    def input_dimension(self) -> int:
        """n_s + n_b."""
        return self.skills + self.bits

    @property
    def frequencies(self) -> Float[np.ndarray, " skill"]:
        """P(k), shape (n_s,)."""
        return skill_frequencies(self.skills, self.exponent)

    @property
    def relevant(self) -> Int[np.ndarray, "skill relevant"]:
        """M_k, the positions of the bits of each skill, counted from 0 and in order, shape (n_s, m)."""
        if self.subsets == "exclusive":
            return np.arange(self.skills * self.relevant_bits).reshape(self.skills, self.relevant_bits)
        draw = np.random.default_rng(self.seed)
        return np.sort([draw.choice(self.bits, self.relevant_bits, replace=False) for _ in range(self.skills)])

    def sample(self, key: Any, samples: PositiveInt, *, skill: Any = None, dtype: Any = float) -> ParitySample:
        """Draw samples in pure JAX, so that a compiled training loop can make each batch where it uses it.

        The bits are drawn 32 at a time and parities counted on whole words, so that a batch costs little beside the
        step that trains on it. Probabilities are rounded to multiples of 2⁻³².

        Args:
            key: JAX random key.
            samples: n, known when compiling.
            skill: Number of a skill from 0, to draw that one alone; may be traced.
            dtype: Of inputs and targets; by default that of JAX's floating-point numbers.

        Raises:
            InputError: A number of samples that is not positive and whole, or a skill that does not exist.

        Example:
            >>> import jax
            >>> parity = SparseParity(skills=2, bits=4, relevant_bits=2)
            >>> inputs, targets, skill = jax.jit(lambda key: parity.sample(key, 100))(jax.random.key(0))
            >>> inputs.shape, targets.shape
            ((100, 6), (100, 1))
        """
        if skill is not None:
            self._require_skill(skill)
        return draw(self, key, skill, samples, dtype)

    def population(self) -> ParityPopulation:
        """All inputs with their probabilities, skill by skill.

        Raises:
            InputError: More than 16 bits, or more than a gigabyte of inputs.

        Example:
            >>> parity = SparseParity(skills=2, bits=4, relevant_bits=2)
            >>> population = parity.population()
            >>> population.inputs.shape, float(population.weights.sum().round(12))
            ((32, 6), 1.0)
        """
        table = self.all_bits()
        rows = self.skills * len(table)
        require(
            rows * self.input_dimension <= _MOST_NUMBERS,
            f"the population has {rows} inputs of {self.input_dimension} numbers",
            argument="skills",
            value=self.skills,
            remedy="sample, or choose fewer skills or bits",
        )
        skill = np.repeat(np.arange(self.skills), len(table))
        inputs = np.concatenate([np.eye(self.skills)[skill], np.tile(table, (self.skills, 1))], axis=1)
        odd = np.concatenate([table[:, bits].sum(axis=1) % 2 for bits in self.relevant])
        targets = self.target_scale * (1 - 2 * odd[:, None])
        return ParityPopulation(inputs, targets, skill, self.frequencies[skill] / len(table))

    def all_bits(self) -> Float[np.ndarray, "n bit"]:
        """All values of the bits, shape (2^n_b, n_b).

        Raises:
            InputError: More than 16 bits.
        """
        require(
            self.bits <= _MOST_BITS,
            f"bits is {self.bits}, and the population has 2^{self.bits} inputs for each skill",
            argument="bits",
            value=self.bits,
            remedy=f"sample, or choose at most {_MOST_BITS} bits",
        )
        return (np.arange(2**self.bits)[:, None] >> np.arange(self.bits) & 1).astype(np.float64)

    def skill_strength(
        self, function: Callable[[Any], Any], *, key: Any = None, samples: Annotated[int, Ge(2)] = 20_000
    ) -> SkillStrength:
        """The strength R_k = E[g_k f | skill k] of every skill in a function, and what loss it leaves.

        As L_k = ½ (S² + E[f² | k] − 2 S R_k), the loss of a skill is ½ (S − R_k)² only if f is proportional to g_k on
        its inputs, and larger otherwise. One skill is evaluated at a time, which bounds the memory, but for
        gradients, which need what all have left behind; all of it can be compiled.

        Args:
            function: f, a JAX function of a batch of inputs (n, n_s + n_b) with values (n, 1) or (n,).
            key: JAX random key, to estimate from samples; without it the population gives the exact values.
            samples: M ≥ 2, the samples of each skill that are drawn.

        Raises:
            InputError: Values of another shape, fewer than two samples, or no key and more than 16 bits.

        Example:
            >>> parity = SparseParity(skills=1, bits=3, target_scale=1.0)
            >>> zero = parity.skill_strength(lambda inputs: 0 * inputs[:, 0])
            >>> float(zero.strength[0]), float(zero.loss)
            (0.0, 0.5)
        """
        return measure_skills(self, function, key=key, samples=samples)

    def population_loss(self, function: Callable[[Any], Any]) -> Float[Array, ""]:
        """L = ½ E[(f − y)²] exactly, from all inputs.

        Raises:
            InputError: More than 16 bits, or values of another shape than (n, 1) or (n,).
        """
        return self.skill_strength(function).loss

    def expectation(self) -> Expectation:
        """The exact loss as an `Expectation`, for training on the whole population.

        Raises:
            InputError: More than 16 bits.
        """
        self.all_bits()
        return Expectation(self.population_loss, self.name, (*self.description, "The loss is over all inputs."))

    @property
    def has_expectation(self) -> bool:
        """Whether there are at most 16 bits, and inputs of all skills for no more than a gigabyte."""
        return self.bits <= _MOST_BITS and self.skills * 2**self.bits * self.input_dimension <= _MOST_NUMBERS

    def task(self, samples: PositiveInt, *, seed: Seed = 0) -> Task:
        """A training set of fixed samples.

        Raises:
            InputError: Fewer than two samples.
        """
        require_room(samples * (self.skills + self.bits), samples=samples)
        drawn = self.sample(jax.random.key(seed), samples)
        return Task(
            np.asarray(drawn.inputs),
            np.asarray(drawn.targets),
            name=self.name,
            description=(*self.description, f"{samples} samples."),
            feature_names=[f"skill {k + 1}" for k in range(self.skills)] + [f"bit {j + 1}" for j in range(self.bits)],
        )

    @property
    def description(self) -> tuple[str, ...]:
        """What is drawn, in one sentence."""
        return (
            f"{self.skills} parities of {self.relevant_bits} of {self.bits} bits, on {self.subsets} subsets, with "
            f"frequencies falling as k^-{self.exponent + 1:g}.",
        )

    def _require_skill(self, skill: Any) -> None:
        if not is_traced(skill):
            require_kind(Annotated[int, Interval(ge=0, le=self.skills - 1)], skill=skill)

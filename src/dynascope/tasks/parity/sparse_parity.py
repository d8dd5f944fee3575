"""Multitask sparse parity: many parities of a few bits, with power-law frequencies.

Multitask sparse parity is a model of scaling laws and emergence. Each skill emerges at its own training time, number of
samples and number of neurons. The total loss is a sum of steps, one per skill, and follows a power law.
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
    """All n = n_s 2^n_b inputs of multitask sparse parity, as NumPy arrays.

    Attributes:
        inputs: Shape (n, n_s + n_b).
        targets: Shape (n, 1).
        skill: Index of the skill of each input, from 0, shape (n,).
        weights: Probability P(k)/2^n_b of each input, shape (n,).
    """

    inputs: Float[np.ndarray, "n d"]
    targets: Float[np.ndarray, "n 1"]
    skill: Int[np.ndarray, " n"]
    weights: Float[np.ndarray, " n"]


@checked
@dataclasses.dataclass(frozen=True)
class SparseParity(Stream):
    """A mixture of n_s skills, each the parity of m of n_b bits.

        y = S g_k(x) = S (−1)^(Σ_{j∈M_k} x_j)

    Skill k has probability P(k) ∝ k^−(α+1). The bits x are uniform and independent, and the input is [one-hot(k), x].
    Instances are hashable and can be static arguments of compiled functions.

    Attributes:
        skills: Number of skills n_s.
        bits: Number of bits n_b.
        relevant_bits: Number m of bits on which each skill depends.
        exponent: α > 0.
        target_scale: Target scale S > 0.
        subsets: "exclusive" (skill k depends on the bits (k−1)m, …, km − 1) or "random" (each skill depends on m random
            bits, and skills can share bits).
        seed: Seed of the random subsets.

    Raises:
        InputError: If a number is out of range, if there are more relevant bits than bits, or if there are too few bits
            for exclusive subsets.

    References:
        Nam et al., arXiv:2404.17563, and Nam, DPhil thesis (2024), chapter 4, for exclusive subsets; Michaud et al.,
        arXiv:2303.13506, for random subsets.

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
            f"relevant_bits is {self.relevant_bits}, but bits is {self.bits}",
            argument="relevant_bits",
            value=self.relevant_bits,
            remedy=f"choose at most {self.bits} relevant bits",
        )
        needed = self.skills * self.relevant_bits
        require(
            self.subsets == "random" or needed <= self.bits,
            f"bits is {self.bits}, but skills={self.skills} and relevant_bits={self.relevant_bits} require {needed}",
            argument="bits",
            value=self.bits,
            remedy="choose more bits, fewer skills or random subsets",
        )

    @property
    def input_dimension(self) -> int:
        """Number of inputs n_s + n_b."""
        return self.skills + self.bits

    @property
    def frequencies(self) -> Float[np.ndarray, " skill"]:
        """Probability P(k) of each skill, shape (n_s,)."""
        return skill_frequencies(self.skills, self.exponent)

    @property
    def relevant(self) -> Int[np.ndarray, "skill relevant"]:
        """Sorted indices M_k of the relevant bits of each skill, from 0, shape (n_s, m)."""
        if self.subsets == "exclusive":
            return np.arange(self.skills * self.relevant_bits).reshape(self.skills, self.relevant_bits)
        draw = np.random.default_rng(self.seed)
        return np.sort([draw.choice(self.bits, self.relevant_bits, replace=False) for _ in range(self.skills)])

    def sample(self, key: Any, samples: PositiveInt, *, skill: Any = None, dtype: Any = float) -> ParitySample:
        """Draw samples in pure JAX, for use inside compiled training loops.

        Bits are drawn and parities are computed on 32-bit words, so a batch takes little time compared with a training
        step. Probabilities are rounded to multiples of 2⁻³².

        Args:
            key: JAX random key.
            samples: Number n of samples, static under `jax.jit`.
            skill: Index of a single skill to draw, from 0; can be traced. None draws from all skills.
            dtype: Type of inputs and targets; by default JAX's floating-point type.

        Raises:
            InputError: If the number of samples is not a positive integer, or if the skill does not exist.

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
        """List all inputs with their probabilities, ordered by skill.

        Raises:
            InputError: If there are more than 16 bits, or if the inputs would take more than a gigabyte.

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
            remedy="use samples, or choose fewer skills or bits",
        )
        skill = np.repeat(np.arange(self.skills), len(table))
        inputs = np.concatenate([np.eye(self.skills)[skill], np.tile(table, (self.skills, 1))], axis=1)
        odd = np.concatenate([table[:, bits].sum(axis=1) % 2 for bits in self.relevant])
        targets = self.target_scale * (1 - 2 * odd[:, None])
        return ParityPopulation(inputs, targets, skill, self.frequencies[skill] / len(table))

    def all_bits(self) -> Float[np.ndarray, "n bit"]:
        """All values of the bits, shape (2^n_b, n_b).

        Raises:
            InputError: If there are more than 16 bits.
        """
        require(
            self.bits <= _MOST_BITS,
            f"bits is {self.bits}, so the population has 2^{self.bits} inputs per skill",
            argument="bits",
            value=self.bits,
            remedy=f"use samples, or choose at most {_MOST_BITS} bits",
        )
        return (np.arange(2**self.bits)[:, None] >> np.arange(self.bits) & 1).astype(np.float64)

    def skill_strength(
        self, function: Callable[[Any], Any], *, key: Any = None, samples: Annotated[int, Ge(2)] = 20_000
    ) -> SkillStrength:
        """Measure the strength R_k = E[g_k f | skill k] and the loss of every skill.

            L_k = ½ (S² + E[f² | k] − 2 S R_k) ≥ ½ (S − R_k)²,

        with equality if f is proportional to g_k on the inputs of skill k. Skills are evaluated one at a time to limit
        memory, but gradients store the intermediate values of all skills. The function can be compiled with `jax.jit`.

        Args:
            function: f, a JAX function of a batch of inputs (n, n_s + n_b) with values (n, 1) or (n,).
            key: JAX random key for an estimate from samples; None computes exact values on the population.
            samples: Number M ≥ 2 of samples per skill.

        Raises:
            InputError: If the values do not have shape (n, 1) or (n,), if there are fewer than two samples, or if there
                is no key and more than 16 bits.

        Example:
            >>> parity = SparseParity(skills=1, bits=3, target_scale=1.0)
            >>> zero = parity.skill_strength(lambda inputs: 0 * inputs[:, 0])
            >>> float(zero.strength[0]), float(zero.loss)
            (0.0, 0.5)
        """
        return measure_skills(self, function, key=key, samples=samples)

    def population_loss(self, function: Callable[[Any], Any]) -> Float[Array, ""]:
        """Compute the exact loss L = ½ E[(f − y)²] over all inputs.

        Raises:
            InputError: If there are more than 16 bits, or if the values do not have shape (n, 1) or (n,).
        """
        return self.skill_strength(function).loss

    def expectation(self) -> Expectation:
        """Make an `Expectation` of the exact loss, for training on the whole population.

        Raises:
            InputError: If there are more than 16 bits.
        """
        self.all_bits()
        return Expectation(self.population_loss, self.name, (*self.description, "The loss is over all inputs."))

    @property
    def has_expectation(self) -> bool:
        """Whether there are at most 16 bits and the inputs take at most a gigabyte."""
        return self.bits <= _MOST_BITS and self.skills * 2**self.bits * self.input_dimension <= _MOST_NUMBERS

    def task(self, samples: PositiveInt, *, seed: Seed = 0) -> Task:
        """Draw a fixed training set.

        Raises:
            InputError: If there are fewer than two samples.
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
        """Description of the distribution, in one sentence."""
        return (
            f"{self.skills} parities of {self.relevant_bits} of {self.bits} bits, on {self.subsets} subsets, with "
            f"frequencies proportional to k^-{self.exponent + 1:g}.",
        )

    def _require_skill(self, skill: Any) -> None:
        if not is_traced(skill):
            require_kind(Annotated[int, Interval(ge=0, le=self.skills - 1)], skill=skill)

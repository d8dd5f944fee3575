"""Chains of implications: does one symbol imply another?"""

from __future__ import annotations

import itertools
import string
from collections.abc import Sequence

import numpy as np

from dynascope.tasks.labelled import Labelled
from dynascope.tasks.vocabulary import Vocabulary
from dynascope.validation import checked, require
from dynascope.validation.bounded_scalars import PositiveInt, Seed

__all__ = ["IMPLICATION_VOCABULARY", "implications"]

_PADDING = "."
_SLOT = 4  # characters of a clause and its separator, or of the question
_LONGEST = len(string.ascii_lowercase) // 2 - 1  # two chains have 2 (length + 1) symbols

IMPLICATION_VOCABULARY = Vocabulary(string.ascii_lowercase + ">,:?" + _PADDING)


@checked
def implications(
    lengths: PositiveInt | Sequence[int], samples: PositiveInt, *, longest: PositiveInt | None = None, seed: Seed = 0
) -> Labelled:
    """Draw questions about chains of implications, such as "b>c,d>e,a>b,f>d:a>c?", with the classes "no" and "yes".

    Each sample has two chains of the same length, x_0 > x_1 > … > x_k and z_0 > z_1 > … > z_k, with different random
    letters. All 2k clauses are shuffled. The question is "x_0>x_k?", with the answer yes, or "x_0>z_k?", with the
    answer no. Half of the samples of each length have the answer yes.

    No shortcut gives the answer. Each symbol of the question occurs in one clause, the first on the left and the second
    on the right, whatever the answer. The set of symbols, their counts and the sides on which they occur are therefore
    independent of the answer, and only following a chain reveals it.

    The clauses are placed in random slots of four characters, and "." fills the other 2 (longest − k) slots. Short
    chains therefore use all positions, so that training on short chains also trains the positions of longer ones. The
    question is at the end, and the loss and accuracy count only the answer, which a network gives at the last position.

    Args:
        lengths: Number k of implications per chain, or several, at most 12; each has the same number of samples up to
            one.
        samples: Number of samples.
        longest: Number of implications per chain for which there is space, at most 12; None for the largest of
            `lengths`. Training and test data of the same network need the same value.
        seed: Seed of the draw. Samples of different seeds are independent.

    Returns:
        Data with inputs (samples, 8 longest + 4), tokens of `IMPLICATION_VOCABULARY`, and labels 0 ("no") and 1
        ("yes").

    Raises:
        InputError: If there are no lengths, if a length is below 1 or above `longest`, if `longest` exceeds 12, or if
            there are fewer than two samples per length.

    Example:
        >>> data = implications([1, 2], 100, longest=3)
        >>> data.inputs.shape, data.class_names
        ((100, 28), ('no', 'yes'))
        >>> [IMPLICATION_VOCABULARY.decode(row) for row in data.inputs[:2]], data.labels[:2].tolist()
        (['....j>r,g>k:............j>r?', '....b>s,e>y:............e>s?'], [1, 0])
    """
    chosen = _checked_lengths(lengths, samples, longest)
    longest = max(chosen) if longest is None else longest
    draw = np.random.default_rng(seed)
    # Lengths alternate, and the answer changes after each round, so that both are balanced within each length.
    places = np.arange(samples)
    each, labels = np.asarray(chosen)[places % len(chosen)], places // len(chosen) % 2
    order = draw.permutation(samples)
    each, labels = each[order], labels[order]
    text = "".join(
        _sample(length, answer, longest, draw) for length, answer in zip(each.tolist(), labels.tolist(), strict=True)
    )
    return Labelled(
        IMPLICATION_VOCABULARY.encode(text).reshape(samples, -1),
        labels,
        ("no", "yes"),
        "implications",
        (
            f"Questions about two chains of {_listed(chosen)} implications, whose clauses are shuffled.",
            "The question connects the first symbol of a chain with the last symbol of the same chain (yes) or of the "
            "other chain (no).",
        ),
    )


def _sample(length: int, answer: int, longest: int, draw: np.random.Generator) -> str:
    letters = draw.permutation(list(string.ascii_lowercase))[: 2 * length + 2]
    chains = letters.reshape(2, length + 1)
    clauses = [f"{left}>{right}" for chain in chains for left, right in itertools.pairwise(chain)]
    slots = np.sort(draw.choice(2 * longest, len(clauses), replace=False))
    placed = [_PADDING * _SLOT] * (2 * longest)
    for slot, clause in zip(slots, draw.permutation(clauses), strict=True):
        placed[slot] = f"{clause}{':' if slot == slots[-1] else ','}"
    return "".join(placed) + f"{chains[0, 0]}>{chains[1 - answer, -1]}?"


def _checked_lengths(lengths: int | Sequence[int], samples: int, longest: int | None) -> list[int]:
    chosen = [lengths] if isinstance(lengths, int) else list(lengths)
    require(len(chosen) > 0, "lengths is empty", argument="lengths", value=lengths, remedy="give at least one length")
    most = _LONGEST if longest is None else longest
    require(
        most <= _LONGEST,
        f"longest is {most}, but the letters suffice for chains of {_LONGEST} implications",
        argument="longest",
        value=most,
        remedy=f"choose at most {_LONGEST}",
    )
    wrong = [each for each in chosen if not isinstance(each, int) or not 1 <= each <= most]
    require(
        not wrong,
        f"lengths contains {wrong[0] if wrong else None!r}",
        argument="lengths",
        value=wrong,
        remedy=f"choose whole numbers from 1 to {most}" + (", or increase longest" if most < _LONGEST else ""),
    )
    require(
        samples >= 2 * len(chosen),
        f"samples is {samples} for {len(chosen)} length{'s' * (len(chosen) > 1)}",
        argument="samples",
        value=samples,
        remedy="give at least two samples for each length",
    )
    return chosen


def _listed(lengths: Sequence[int]) -> str:
    *others, last = map(str, sorted(set(lengths)))
    return f"{', '.join(others)} or {last}" if others else last

"""Chains of implications: does one symbol imply another?"""

from __future__ import annotations

import itertools
import string
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from annotated_types import Interval

from dynascope.tasks.labelled import Labelled
from dynascope.tasks.vocabulary import Vocabulary
from dynascope.validation import checked, require
from dynascope.validation.bounded_scalars import PositiveInt, Seed

__all__ = ["IMPLICATION_VOCABULARY", "implications"]

_PADDING = "."
_SLOT = 4  # characters of a clause and its separator, or of the question

IMPLICATION_VOCABULARY = Vocabulary(string.ascii_lowercase + ">,:?" + _PADDING)


@checked
def implications(
    lengths: PositiveInt | Sequence[int],
    samples: PositiveInt,
    *,
    longest: PositiveInt | None = None,
    letters: Annotated[int, Interval(ge=2, le=26)] = 8,
    seed: Seed = 0,
) -> Labelled:
    """Draw questions about chains of implications, such as "b>c,a>b:a>c?", with the classes "no" and "yes".

    A sample is a chain x_0 > x_1 > … > x_k of different random letters. Its k clauses are shuffled. The question is
    about two random symbols of the chain, in either order: "x_i>x_j?" has the answer yes for i < j and no for i > j.
    Half of the samples of each length have the answer yes.

    The first and the last symbol of a chain occur on one side of one clause only. A question about one of them can
    therefore be answered without following the chain; all questions about chains of one or two implications are of this
    kind. For k > 2, a share of (k − 1)(k − 2)/(k(k + 1)) of the questions is about two inner symbols.

    Shorter texts are padded with "." on the left, so that the question is always at the end.

    Args:
        lengths: Number k of implications per chain, or several, below `letters`; each has the same number of samples up
            to one.
        samples: Number of samples.
        longest: Number of implications for which there is space, below `letters`; None for the largest of `lengths`.
            Training and test data of the same network need the same value.
        letters: Number of letters that occur.
        seed: Seed of the draw. Samples of different seeds are independent.

    Returns:
        Data with inputs (samples, 4 longest + 4), tokens of `IMPLICATION_VOCABULARY`, and labels 0 ("no") and 1
        ("yes").

    Raises:
        InputError: If there are no lengths, if a length is below 1 or above `longest`, if `longest` is not below
            `letters`, or if there are fewer than two samples per length.

    Example:
        >>> data = implications([1, 2], 100, longest=3)
        >>> data.inputs.shape, data.class_names
        ((100, 16), ('no', 'yes'))
        >>> [IMPLICATION_VOCABULARY.decode(row) for row in data.inputs[:2]], data.labels[:2].tolist()
        (['........c>f:c>f?', '........d>g:g>d?'], [1, 0])
    """
    chosen = _checked_lengths(lengths, samples, longest, letters)
    longest = max(chosen) if longest is None else longest
    draw = np.random.default_rng(seed)
    # Lengths alternate, and the answer changes after each round, so that both are balanced within each length.
    places = np.arange(samples)
    each, labels = np.asarray(chosen)[places % len(chosen)], places // len(chosen) % 2
    order = draw.permutation(samples)
    each, labels = each[order], labels[order]
    text = "".join(
        _sample(length, answer, longest, string.ascii_lowercase[:letters], draw)
        for length, answer in zip(each.tolist(), labels.tolist(), strict=True)
    )
    return Labelled(
        IMPLICATION_VOCABULARY.encode(text).reshape(samples, -1),
        labels,
        ("no", "yes"),
        "implications",
        (
            f"Questions about chains of {_listed(chosen)} implications, whose clauses are shuffled.",
            "The question is whether one symbol of the chain implies another (yes), or the reverse (no).",
        ),
    )


def _sample(length: int, answer: int, longest: int, letters: str, draw: np.random.Generator) -> str:
    chain = draw.permutation(list(letters))[: length + 1]
    clauses = [f"{left}>{right}" for left, right in itertools.pairwise(chain)]
    shuffled = ",".join(draw.permutation(clauses)) + ":"
    first, second = np.sort(draw.choice(length + 1, 2, replace=False))[:: 1 if answer else -1]
    return f"{shuffled}{chain[first]}>{chain[second]}?".rjust(_SLOT * (longest + 1), _PADDING)


def _checked_lengths(lengths: int | Sequence[int], samples: int, longest: int | None, letters: int) -> list[int]:
    chosen = [lengths] if isinstance(lengths, int) else list(lengths)
    require(len(chosen) > 0, "lengths is empty", argument="lengths", value=lengths, remedy="give at least one length")
    most = letters - 1 if longest is None else longest
    require(
        most < letters,
        f"longest is {most}, but {letters} letters suffice for chains of {letters - 1} implications",
        argument="longest",
        value=most,
        remedy=f"choose at most {letters - 1}, or more letters",
    )
    wrong = [each for each in chosen if not isinstance(each, int) or not 1 <= each <= most]
    require(
        not wrong,
        f"lengths contains {wrong[0] if wrong else None!r}",
        argument="lengths",
        value=wrong,
        remedy=f"choose whole numbers from 1 to {most}" + ", or increase longest or letters",
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

"""Next-character prediction on a text."""

from __future__ import annotations

import dataclasses
import platform
from os import PathLike
from pathlib import Path

import numpy as np

from dynascope.tasks.data.read_text import read_text
from dynascope.tasks.labelled import Labelled
from dynascope.tasks.python_documentation import python_documentation
from dynascope.tasks.split import split_rows
from dynascope.tasks.vocabulary import Vocabulary
from dynascope.validation import checked, require
from dynascope.validation.bounded_scalars import OpenFraction, PositiveInt, Seed

__all__ = ["TextTask", "text_task"]

_FEWEST = 2  # windows that each part needs


@dataclasses.dataclass(frozen=True, eq=False)
class TextTask:
    """Windows of a text whose next characters a network predicts.

    Attributes:
        train: Training windows: inputs (n, context) are tokens, and labels (n, context) are the tokens that follow.
        test: Held-out windows of the same form.
        vocabulary: Characters of the tokens.
    """

    train: Labelled
    test: Labelled
    vocabulary: Vocabulary


@checked
def text_task(
    text: str | PathLike[str] | None = None,
    context: PositiveInt = 64,
    *,
    vocabulary: Vocabulary | None = None,
    minimum_count: PositiveInt = 2,
    held_out: OpenFraction = 0.1,
    seed: Seed = 0,
) -> TextTask:
    """Cut a text into training and held-out windows of characters.

    A window has context + 1 characters c_0, …, c_context. Its inputs are the tokens of c_0, …, c_(context−1), and its
    labels are the tokens of c_1, …, c_context. Windows do not overlap, and random windows are held out, so no held-out
    character is used in training. The characters after the last complete window are dropped.

    Args:
        text: The text, the path of a file in UTF-8 (a `pathlib.Path`), or None for one million characters of
            `python_documentation`.
        context: Number of characters from which the last label of a window is predicted.
        vocabulary: Characters to distinguish; None for those of the training windows.
        minimum_count: Number of occurrences in the training windows below which a character is represented by the
            unknown token; applies only without a vocabulary.
        held_out: Fraction of held-out windows.
        seed: Seed of the draw of held-out windows.

    Returns:
        Training windows, held-out windows and the vocabulary.

    Raises:
        InputError: If the text is empty or too short for two windows in each part, if a file cannot be read, or if no
            character occurs often enough.

    Example:
        >>> task = text_task("The quick brown fox jumps over the lazy dog. " * 8, 9, minimum_count=1)
        >>> task.train.inputs.shape, task.test.inputs.shape, task.vocabulary.size
        ((32, 9), (4, 9), 30)
        >>> [task.vocabulary.decode(tokens[0]) for tokens in (task.train.inputs, task.train.labels)]
        ['The quick', 'he quick ']
    """
    if text is None:
        text, source = python_documentation(), f"the documentation of Python {platform.python_version()}"
    elif isinstance(text, str):
        source = "a text"
    else:
        source = Path(text).name
        text = read_text(text)
    windows = _windows(text, context, held_out)
    train, test = (windows[rows] for rows in split_rows(len(windows), held_out, seed))
    given = vocabulary is not None
    vocabulary = vocabulary or Vocabulary.of("".join(train), minimum_count=minimum_count)
    characters = len(vocabulary.characters)
    kept = f"{characters} characters of the given vocabulary" if given else f"{characters} most frequent characters"
    description = (
        f"Windows of {context} characters from {source} ({len(text)} characters), with the next characters as labels.",
        f"The tokens are the {kept} and the unknown token.",
    )
    learned, tested = (_labelled(each, context, vocabulary, description) for each in (train, test))
    return TextTask(learned, tested, vocabulary)


def _windows(text: str, context: int, held_out: float) -> np.ndarray:
    require(text != "", "text is empty", argument="text", value="", remedy="give a text with characters")
    size = context + 1
    number = len(text) // size
    require(
        number >= 2 * _FEWEST,
        f"text has {len(text)} characters, which is too short for {2 * _FEWEST} windows of context + 1 = {size}",
        argument="text",
        value=len(text),
        remedy=f"give a text of at least {2 * _FEWEST * size} characters, or choose a context of at most "
        f"{max(1, len(text) // (2 * _FEWEST) - 1)}",
    )
    test = round(number * held_out)
    require(
        _FEWEST <= test <= number - _FEWEST,
        f"held_out is {held_out}, which leaves {test} of {number} windows for the held-out part",
        argument="held_out",
        value=held_out,
        remedy=f"choose a fraction that leaves at least {_FEWEST} windows in each part, or give a longer text",
    )
    return np.array([text[start : start + size] for start in range(0, number * size, size)], dtype=object)


def _labelled(windows: np.ndarray, context: int, vocabulary: Vocabulary, description: tuple[str, ...]) -> Labelled:
    tokens = vocabulary.encode("".join(windows), unknown=True).reshape(-1, context + 1)
    return Labelled(tokens[:, :-1], tokens[:, 1:], vocabulary.names, "next character", description)

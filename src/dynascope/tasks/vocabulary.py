"""Characters and the integer tokens that represent them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from functools import cached_property

import numpy as np
from jaxtyping import Int32
from numpy.typing import ArrayLike

from dynascope.validation import checked, require, require_array, require_whole_numbers
from dynascope.validation.bounded_scalars import PositiveInt

__all__ = ["Vocabulary"]

_UNKNOWN = "\N{REPLACEMENT CHARACTER}"  # how a decoded text shows the unknown token


@checked
@dataclasses.dataclass(frozen=True)
class Vocabulary:
    r"""The characters that a language model distinguishes; their tokens are the integers from 1.

    Token 0 is the unknown token, which represents all other characters.

    Attributes:
        characters: The characters, each once; the first has token 1.

    Raises:
        InputError: If there are no characters, or if a character occurs twice.

    Example:
        >>> vocabulary = Vocabulary.of("a banana")
        >>> vocabulary.characters, vocabulary.size
        (' abn', 5)
        >>> tokens = vocabulary.encode("ban")
        >>> tokens.tolist(), vocabulary.decode(tokens)
        ([3, 2, 4], 'ban')
        >>> vocabulary.encode("bad")
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: text contains 'd', which is not in the vocabulary: remove it, or ...
    """

    characters: str

    def __post_init__(self):
        require(
            self.characters != "",
            "characters is empty",
            argument="characters",
            value="",
            remedy="give at least one character",
        )
        repeated = next((one for one, count in Counter(self.characters).items() if count > 1), "")
        require(
            not repeated,
            f"characters contains {repeated!r} more than once",
            argument="characters",
            value=repeated,
            remedy="give each character once",
        )

    @classmethod
    def of(cls, text: str, *, minimum_count: PositiveInt = 1) -> Vocabulary:
        """Collect the characters of a text, in the order of their code points.

        Args:
            text: The text.
            minimum_count: Number of occurrences below which a character is left out.

        Raises:
            InputError: If no character occurs often enough.

        Example:
            >>> Vocabulary.of("a banana", minimum_count=2).characters
            'an'
        """
        require(text != "", "text is empty", argument="text", value="", remedy="give a text with characters")
        counts = Counter(text)
        frequent = "".join(sorted(one for one, count in counts.items() if count >= minimum_count))
        require(
            frequent != "",
            f"minimum_count is {minimum_count}, but no character occurs more than {max(counts.values())} times",
            argument="minimum_count",
            value=minimum_count,
            remedy="choose a smaller number, or give a longer text",
        )
        return cls(frequent)

    @property
    def size(self) -> int:
        """Number of tokens, including the unknown token."""
        return len(self.characters) + 1

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each token: "unknown" or its character."""
        return ("unknown", *self.characters)

    def encode(self, text: str, *, unknown: bool = False) -> Int32[np.ndarray, " length"]:
        """Convert a text to tokens.

        Args:
            text: The text.
            unknown: Whether characters outside the vocabulary become the unknown token.

        Raises:
            InputError: If `unknown` is false and a character is not in the vocabulary.
        """
        tokens = np.fromiter((self._tokens.get(one, 0) for one in text), np.int32, len(text))
        first = "" if unknown or tokens.all() else text[int(np.argmin(tokens))]
        require(
            not first,
            f"text contains {first!r}, which is not in the vocabulary",
            argument="text",
            value=first,
            remedy="remove it, or represent such characters by the unknown token with unknown=True",
        )
        return tokens

    def decode(self, tokens: ArrayLike) -> str:
        """Convert a row of tokens to a text, in which "�" stands for the unknown token.

        Args:
            tokens: The tokens, shape (length,).

        Raises:
            InputError: If tokens are not a row of integers, or if one is not in the vocabulary.

        Example:
            >>> Vocabulary("abc").decode([1, 0, 3])
            'a�c'
        """
        row = require_array("tokens", tokens, (None,))
        require_whole_numbers("tokens", row, most=self.size - 1)
        table = (_UNKNOWN, *self.characters)
        return "".join(table[int(token)] for token in row)

    @cached_property
    def _tokens(self) -> dict[str, int]:
        return {one: token for token, one in enumerate(self.characters, start=1)}

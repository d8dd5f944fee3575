"""Classes of characters: letters, digits, space and punctuation."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool

from dynascope.tasks import Vocabulary

__all__ = ["token_classes"]


def token_classes(vocabulary: Vocabulary) -> dict[str, Bool[np.ndarray, " token"]]:
    """Sort the tokens of a vocabulary into letters, digits, space and punctuation.

    "space" contains line ends and tabs, and "punctuation" contains all remaining characters, such as symbols. The
    unknown token belongs to no class.

    Args:
        vocabulary: The vocabulary.

    Returns:
        For each class, a mask with one entry per token of the vocabulary; `mask[tokens]` selects the positions of a
        text. Every character belongs to exactly one class.

    Example:
        >>> masks = token_classes(Vocabulary("a1 ,"))
        >>> {name: mask.tolist().index(True) for name, mask in masks.items()}
        {'letters': 1, 'digits': 2, 'space': 3, 'punctuation': 4}
    """
    characters = vocabulary.characters
    masks = {
        "letters": [each.isalpha() for each in characters],
        "digits": [each.isnumeric() and not each.isalpha() for each in characters],
        "space": [each.isspace() for each in characters],
    }
    masks["punctuation"] = [not any(each) for each in zip(*masks.values(), strict=True)]
    return {name: np.array([False, *mask]) for name, mask in masks.items()}

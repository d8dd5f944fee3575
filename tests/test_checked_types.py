"""Types and shapes that annotations tell are checked while tests run."""

from __future__ import annotations

import beartype
import jaxtyping
import numpy as np
import pytest
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.theory.scaling_laws.descent import huber


@jaxtyping.jaxtyped(typechecker=beartype.tolerant)
def cut(x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " d"], rows: int = 0) -> Float[np.ndarray, "n d"]:
    return (x * y)[rows:]


@jaxtyping.jaxtyped(typechecker=beartype.tolerant)
def named(x: ArrayLike, name: str) -> str:
    return name if np.ndim(x) else x


def test_sizes_of_one_call_are_held_together():
    x, y = np.ones((3, 2)), np.ones(2)
    assert cut(x, y).shape == (3, 2)
    # Those of another call are others.
    assert cut(np.ones((5, 4)), np.ones(4)).shape == (5, 4)
    for arguments in ((x, np.ones(3)), (x[0], y), (x.astype(np.int64), y), (x, y, 1), (x, y, "1")):
        with pytest.raises(jaxtyping.TypeCheckError):
            cut(*arguments)
    # A call that fails leaves nothing behind.
    assert cut(np.ones((5, 4)), np.ones(4)).shape == (5, 4)


def test_types_are_checked_of_arguments_and_results():
    assert named([1.0, 2.0], "row") == "row"
    for arguments in ((object(), "row"), ([1.0], 1), (1.0, "row")):
        with pytest.raises(jaxtyping.TypeCheckError):
            named(*arguments)


def test_functions_of_the_package_are_among_them():
    with pytest.raises(jaxtyping.TypeCheckError):
        huber(np.ones(3), 1.0)
    with pytest.raises(jaxtyping.TypeCheckError):
        huber(np.ones((1, 3)), object())

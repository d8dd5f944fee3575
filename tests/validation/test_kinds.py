from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from dynascope import groups, tasks
from dynascope.errors import InputError
from dynascope.validation import checked

KINDS = [
    (str, "oak", [None, 3, ["oak"]]),
    (bool, True, [None, "yes", 2, np.ones(2)]),
    (int, np.int64(3), [None, "3", [3], 1j, 10**400]),
    (float, np.array(0.5), [None, "half", [0.5], np.ones(2), np.array("a")]),
    (Literal["a", "b"], "b", [None, 3, "c"]),
    (str | os.PathLike[str], Path("there"), [None, 3]),
    (Callable[[int], int] | None, None, ["f"]),
    (Mapping[str, int], {}, [None, [("a", 1)]]),
    (Sequence[str], ("a",), [None, "a", [1]]),
    (tuple[int, ...], (1, 2), [3, ["a"]]),
    (np.ndarray, [1.0], [None, "a", {}]),
    (Annotated[Path, "of a file"], Path("there"), ["there"]),
    (Path, Path("there"), [None]),
    ("NotThere | str", None, []),
]


@pytest.mark.parametrize(("kind", "right", "wrong"), KINDS)
def test_an_argument_of_another_kind_is_refused_and_named(kind, right, wrong):
    def identity(thing):
        return thing

    identity.__annotations__["thing"] = kind
    for value in wrong:
        with pytest.raises(InputError, match=r"^thing (is|has shape) ") as caught:
            checked(identity)(value)
        assert caught.value.argument == "thing"
        assert caught.value.remedy
    assert checked(identity)(thing=right) is right or checked(identity)(right) == right


def test_a_default_is_not_checked():
    default: Any = None

    def size(values: str = default):
        return values

    assert checked(size)() is None
    assert checked(size)(None) is None
    assert checked(size).__name__ == "size"


def test_an_argument_that_a_function_has_not_is_named_and_no_other_blamed():
    def size(values: list):
        return len(values)

    with pytest.raises(TypeError, match="unexpected keyword argument 'target'"):
        checked(size)(3, target="price")
    with pytest.raises(InputError, match="values is 3"):
        checked(size)(3)


@pytest.mark.usefixtures("unchecked_types")
def test_the_faces_of_rooms_name_such_arguments():
    with pytest.raises(InputError, match="group is 3: give a Group"):
        groups.irreducible_representations(3)
    with pytest.raises(InputError, match="path is 3: give text or a path"):
        tasks.read_images(3)
    assert groups.irreducible_representations is groups.irreducible_representations

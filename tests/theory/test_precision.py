"""Every public theory function gives the same answer where nobody has switched 64 bits on."""

from __future__ import annotations

import inspect
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from theory_functions import MEMBERS

# Answers all calls in a process with the settings that JAX has by itself, and then again in 64 bits.
FRESH = """
import gc
gc.disable()  # most of what is made stays
import itertools, pickle, sys
from documented import Call, members, numbers
from dynascope import theory
from dynascope.compilation import compile_cache
from dynascope.errors import InputError

found, calls, answers = members(theory), pickle.load(sys.stdin.buffer), {}
with compile_cache():  # programs in 64 bits are those of other tests
    for name, wide in itertools.product(calls, (False, True)):
        try:
            arguments = calls[name] or found[name].calls[0].arguments
            answers[name, wide] = list(numbers(found[name](Call(arguments, wide))))
        except InputError as refused:
            answers[name, wide] = str(refused)
        except Exception as error:
            answers[name, wide] = error
with open(sys.argv[1], "wb") as file:
    pickle.dump(answers, file)
"""


def known(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments as someone has them who does not use JAX."""
    return jax.tree.map(lambda value: np.asarray(value) if isinstance(value, jax.Array) else value, arguments)


@pytest.fixture(scope="module")
def answers(tmp_path_factory) -> dict[tuple[str, bool], Any]:
    calls: dict[str, Any] = {name: known(member.calls[0].arguments) for name, member in MEMBERS.items() if member.calls}
    # Functions cannot be sent; an example that has some is run again there.
    calls |= {name: None for name, given in calls.items() if any(map(inspect.isfunction, jax.tree.leaves(given)))}
    path = tmp_path_factory.mktemp("precision") / "answers.pickle"
    here = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    settings = {name: value for name, value in os.environ.items() if name != "JAX_ENABLE_X64"}
    subprocess.run(
        [sys.executable, "-c", FRESH, str(path)],
        input=pickle.dumps(calls),
        env=settings | {"PYTHONPATH": here},
        check=True,
    )
    return pickle.loads(path.read_bytes())


@pytest.mark.slow
@pytest.mark.parametrize("name", MEMBERS)
def test_a_fresh_process_with_default_precision_gives_the_same_answer_in_64_bits(name, answers):
    answer, right = answers[name, False], answers[name, True]
    assert isinstance(answer, list), repr(answer)
    assert isinstance(right, list), repr(right)
    assert len(answer) == len(right)
    for one, other in zip(answer, right, strict=True):
        # The setting changes nothing, not even in the last bit.
        assert one.dtype == np.float64
        np.testing.assert_array_equal(one, other)

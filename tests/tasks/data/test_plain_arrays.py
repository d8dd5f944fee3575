from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.tasks.data.plain_arrays import array_or_frame

NUMBERS = np.array([[1.0, 2.5], [3.0, -4.0]])


@pytest.mark.parametrize("value", [NUMBERS.tolist(), tuple(map(tuple, NUMBERS)), jnp.asarray(NUMBERS), NUMBERS])
def test_arrays_and_lists_are_arrays_of_numpy(value):
    np.testing.assert_array_equal(array_or_frame(value, "x"), NUMBERS)


def test_numbers_of_half_precision_are_numbers():
    found = np.asarray(array_or_frame(jnp.asarray(NUMBERS, dtype=jnp.bfloat16), "x"), dtype=np.float64)
    np.testing.assert_array_equal(found, NUMBERS)


@pytest.mark.slow
def test_tensors_are_detached():
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(NUMBERS, requires_grad=True)
    for value in (tensor, tensor * 1, tensor.bfloat16(), list(tensor), [list(row) for row in tensor]):
        np.testing.assert_array_equal(array_or_frame(value, "x"), NUMBERS)
    assert array_or_frame(torch.tensor([3, 5]), "y").dtype.kind == "i"
    assert array_or_frame(torch.tensor([True, False]), "y").dtype.kind == "b"
    assert tensor.requires_grad


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, "x is None: pass an array"),
        ("wine.csv", "x is of the type str"),
        ({"a": 1}, "x is of the type dict"),
        (len, "x is of the type builtin_function_or_method"),
        (3.0, "x is not an array of real numbers"),
        ([[1.0], [2.0, 3.0]], "x is not an array of real numbers"),
        (scipy.sparse.csr_matrix(NUMBERS), r"x is a sparse matrix: pass x\.toarray\(\)"),
        (np.ma.masked_less(NUMBERS, 0), "x has masked values"),
    ],
)
def test_what_is_no_table_is_refused(value, problem):
    with pytest.raises(InputError, match=problem):
        array_or_frame(value, "x")


def test_values_that_jax_traces_are_refused():
    with pytest.raises(InputError, match="x is traced by JAX"):
        jit(lambda x: array_or_frame(x, "x"))(NUMBERS)

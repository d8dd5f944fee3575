from __future__ import annotations

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from drawn_modules import drawn

from dynascope.errors import InputError
from dynascope.probes.kernel.examples import count_rows, require_examples
from dynascope.probes.kernel.model import check_inputs, rates_of, split

PARAMS = {"w": np.ones((3, 2), np.float32), "step": np.array(2), "name": "linear", "factor": 0.5}
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def apply(params, x):
    return params["factor"] * params["step"] * (x @ params["w"])


def test_floating_arrays_are_the_parameters_and_the_rest_stays():
    model, (parameters, frozen) = split(apply, PARAMS)
    assert [each.shape for each in parameters] == [(3, 2)]
    assert [int(each) for each in frozen] == [2]
    rebuilt = model.tree(parameters, frozen)
    assert (rebuilt["name"], rebuilt["factor"]) == ("linear", 0.5)
    np.testing.assert_allclose(model.outputs(parameters, frozen, X[1]), [12, 12])


def test_outputs_can_be_reduced():
    model, arrays = split(apply, {**PARAMS, "w": np.eye(3, dtype=np.float32)})
    pseudo = dataclasses.replace(model, reduction="pseudo")
    np.testing.assert_allclose(pseudo.outputs(*arrays, X[1]), [12 / 3**0.5], rtol=1e-6)  # single precision
    np.testing.assert_allclose(dataclasses.replace(model, reduction=(0, 2)).outputs(*arrays, X[1]), [3, 5])


def test_equal_calls_share_what_was_compiled():
    assert split(apply, PARAMS)[0] == split(apply, {**PARAMS, "w": np.zeros((3, 2))})[0]


def test_rates_spread_over_the_tree():
    params = {"a": (np.ones(2), np.ones(3)), "b": np.ones(1), "c": np.array(1)}
    model, (parameters, _) = split(apply, params)
    rates = rates_of(model, parameters, {"a": 0.5, "b": np.array([2.0]), "c": 1.0})
    assert rates is not None
    assert [each.tolist() for each in rates] == [0.5, 0.5, [2.0]]
    assert rates_of(model, parameters, None) is None


@pytest.mark.slow
def test_inputs_can_be_trees():
    assert count_rows({"a": np.ones((4, 2)), "b": np.ones(4)}) == 4
    with pytest.raises(InputError, match="x contains arrays of shapes"):
        require_examples("x", {"a": np.ones((4, 2)), "b": np.ones(3)}, kind="array")
    model, arrays = split(lambda w, x: x["a"] @ w + x["b"][:, None], np.ones((2, 1), np.float32))
    check_inputs(model, arrays, {"a": np.ones((4, 2)), "b": np.ones(4)})


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda w, x: x @ w - jnp.mean(x @ w, axis=0), "batch"),
        (lambda w, x: x @ w / 0, "finite"),
        (lambda w, x: (x @ w)[0], "shape"),
    ],
)
def test_functions_that_do_not_map_rows_to_rows_are_refused(function, message):
    model, arrays = split(function, np.ones((3, 2), np.float32))
    with pytest.raises(InputError, match=message):
        check_inputs(model, arrays, X)


def test_parameters_that_cannot_be_used_are_refused():
    for params in ({}, np.array([1, 2]), np.ones(2, dtype=complex)):
        with pytest.raises(InputError):
            split(apply, params)
    layer = drawn(eqx.nn.Linear, 3, 2)
    with pytest.raises(InputError, match="hashed"):
        split(layer, layer)

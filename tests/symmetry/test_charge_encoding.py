"""Symmetries survive the text in which records store them."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.symmetry import Charge, Part, ResidualCharge, find_symmetries
from dynascope.symmetry.charge_encoding import decode_charges, encode_charges


def require_same(one: Charge, other: Charge) -> None:
    assert type(one) is type(other)
    for field in dataclasses.fields(one):
        if field.name != "parts":
            np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name))
    assert [(each.path, each.factor) for each in one.parts] == [(each.path, each.factor) for each in other.parts]
    for first, second in zip(one.parts, other.parts, strict=True):
        assert first.labels.shape == second.labels.shape
        np.testing.assert_array_equal(first.labels, second.labels)
    assert one.names == other.names


def relu(params, x):
    return jax.nn.relu(x @ params["in"]) @ params["out"]


def linear(params, x):
    return x @ params["in"] @ params["out"]


def shifted(params, x):
    return (x @ params["in"] + jnp.array([0.0, 0.7])) @ params["out"]


def softmax(params, x):
    return jax.nn.log_softmax(jax.nn.relu(x @ params["in"]) @ params["out"])


@pytest.mark.parametrize(
    ("apply", "kinds"),
    [(relu, {"rescale"}), (linear, {"matrix"}), (shifted, {"matrix"}), (softmax, {"rescale", "translation"})],
)
def test_all_kinds_of_symmetries_are_decoded(apply, kinds):
    rng = np.random.default_rng(0)
    params = {"in": rng.normal(size=(3, 2)), "out": rng.normal(size=(2, 3))}
    symmetries = find_symmetries(apply, params, rng.normal(size=(4, 3))).symmetries
    assert {each.kind for each in symmetries} == kinds
    assert isinstance(symmetries[0], ResidualCharge) == (apply is shifted)
    found = decode_charges(encode_charges(symmetries))
    for one, other in zip(symmetries, found, strict=True):
        require_same(one, other)
        np.testing.assert_array_equal(one.form(params, params), other.form(params, params))


@given(
    st.lists(st.integers(-1, 3), min_size=1, max_size=12),
    st.floats(-4, 4, allow_nan=False).filter(bool),
    st.text(max_size=8),
    st.booleans(),
)
def test_any_part_is_decoded(labels, factor, path, column):
    array = np.array(labels).reshape(-1, 1) if column else np.array(labels)
    charge = Charge("scale", (Part(path, array, factor),), 4)
    require_same(charge, *decode_charges(encode_charges([charge])))


def test_the_text_of_a_wide_layer_is_short():
    labels = np.broadcast_to(np.arange(512)[:, None, None, None], (512, 512, 3, 3))
    charge = Charge("rescale", (Part("['w']", labels, 1.0),), 512)
    assert len(encode_charges([charge])) < 200_000  # 9.4 MB of labels


class Other(Charge):
    pass


@pytest.mark.parametrize("symmetries", [[], [Other("scale", (), 0)]])
def test_what_cannot_be_encoded_is_named(symmetries):
    with pytest.raises(InputError) as error:
        encode_charges(symmetries)
    assert error.value.argument == "symmetries"


@pytest.mark.parametrize("text", ["", "[1]", '[{"type": "other"}]', '[{"type":"charge","parts":[{"path":"w"}]}]'])
def test_text_that_encodes_no_symmetries_is_named(text):
    with pytest.raises(InputError) as error:
        decode_charges(text)
    assert error.value.argument == "text"

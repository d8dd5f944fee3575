from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from symmetry.zoo import batch_normed_with_epsilon

from dynascope.symmetry.scaling import rescalings

X = np.ones((5, 3))


def found(apply, *shapes, exact=True, x=X):
    params = [np.ones(shape) for shape in shapes]
    program = jax.make_jaxpr(lambda p, x: apply(x, *p))(params, x)
    return rescalings(program, len(params), exact=exact)


def exponents(rescaling, number, shape):
    """The exponent of every element of a parameter."""
    total = np.zeros(shape)
    for form, places, exponent in rescaling.places.get(number, ()):
        part = np.zeros(form).ravel()
        part[list(places)] = float(exponent)
        total += part.reshape(form)
    return total


def test_each_hidden_unit_has_one_that_moves_nothing_else():
    all_of_them = found(lambda x, w, b, a: jax.nn.relu(x @ w + b) @ a, (3, 4), (4,), (4, 2))
    assert len(all_of_them) == 4
    for unit, each in enumerate(all_of_them):
        one = np.eye(4)[unit]
        np.testing.assert_array_equal(exponents(each, 0, (3, 4)), np.tile(one, (3, 1)))
        np.testing.assert_array_equal(exponents(each, 1, (4,)), one)
        np.testing.assert_array_equal(exponents(each, 2, (4, 2)), -np.tile(one, (2, 1)).T)


@pytest.mark.parametrize(
    ("activation", "power"),
    [
        (jax.nn.relu, 1),
        (jax.nn.leaky_relu, 1),
        (lambda z: jnp.where(z > 0, z, 0.1 * z), 1),
        (lambda z: jnp.maximum(z, 0) ** 3, 3),
        (lambda z: jnp.abs(z) ** 1.5, 1.5),
        (lambda z: jnp.sign(z) * jnp.sqrt(jnp.abs(z)), 0.5),
        (lambda z: z * jnp.abs(z), 2),
        (lambda z: jnp.stack([jax.nn.relu(z), -z], 1).sum(1), 1),
        (lambda z: (jax.lax.complex(z, 2 * z) * (1 + 1j)).imag, 1),
        (lambda z: z * jnp.arctan2(jnp.abs(z), z), 1),
    ],
)
def test_a_homogeneous_activation_shows_its_power_however_it_is_written(activation, power):
    (each,) = found(lambda x, w, a: activation(x @ w) @ a, (3, 1), (1, 2))
    ratio = exponents(each, 1, (1, 2)) / exponents(each, 0, (3, 1))[0, 0]
    np.testing.assert_array_equal(ratio, -power)


@pytest.mark.parametrize(
    "activation",
    [jnp.tanh, jax.nn.gelu, jax.nn.silu, jax.nn.elu, lambda z: z + z**2, lambda z: jnp.maximum(z, 1.0), jnp.round],
)
def test_what_is_not_homogeneous_has_none(activation):
    assert found(lambda x, w, a: activation(x @ w) @ a, (3, 2), (2, 2)) == []


def test_constants_that_are_zero_or_infinite_tie_nothing():
    (each,) = found(lambda x, w, a: jnp.where(x[:, :1] > 0, x @ w, 0.0) @ a + jnp.zeros(2), (3, 1), (1, 2))
    assert set(each.places) == {0, 1}
    assert found(lambda x, w, a: jnp.where(x[:, :1] > 0, x @ w, 1.0) @ a, (3, 1), (1, 2)) == []


def test_a_weight_that_ones_repeat_is_as_large_as_it():
    def apply(x, w, a):
        repeated = jnp.ones((3, 1)) * w
        return jax.nn.relu(x @ repeated.reshape(6).reshape(3, 2)) @ a

    assert len(found(apply, (1, 2), (2, 1))) == 2


def test_the_epsilon_of_a_norm_counts_unless_it_is_left_out():
    def apply(x, *params):
        return batch_normed_with_epsilon(dict(zip(("W1", "b1", "W2", "b2"), params, strict=True)), x)

    shapes = (4, 3), (4,), (2, 4), (2,)
    assert found(apply, *shapes) == []
    assert len(found(apply, *shapes, exact=False)) == 4


def test_units_keep_apart_through_convolutions_with_groups_reshapes_and_slices():
    def apply(x, first, second, head):
        numbers = ("NHWC", "HWIO", "NHWC")
        x = jax.lax.conv_general_dilated(x, first, (1, 1), "SAME", dimension_numbers=numbers)
        x = jax.lax.conv_general_dilated(
            jax.nn.relu(x), second, (2, 2), "SAME", dimension_numbers=numbers, feature_group_count=2
        )
        x = jax.nn.relu(x)[:, 1:, ::-1]
        return x.reshape(len(x), -1) @ head

    shapes = (3, 3, 2, 4), (3, 3, 2, 4), (8, 1)
    all_of_them = found(apply, *shapes, x=np.ones((2, 4, 4, 2)))
    assert len(all_of_them) == 8
    # Channel 1 of the first layer is read by the first group, as its second input.
    each = next(e for e in all_of_them if exponents(e, 0, shapes[0])[0, 0, 0, 1])
    expected = np.zeros((2, 4))
    expected[1, :2] = -1
    np.testing.assert_array_equal(exponents(each, 1, shapes[1])[0, 0], expected)


def test_a_loop_of_any_length_is_read_until_nothing_changes():
    def tied(x, w, a, b):
        step = lambda z, _: (z + jax.nn.relu(z @ a) @ b, None)  # noqa: E731
        return jax.lax.scan(step, x @ w, length=10**6)[0].sum()

    assert len(found(tied, (3, 2), (2, 4), (4, 2))) == 4

    def until(x, w, a):
        return jax.lax.while_loop(lambda z: z.sum() > 9, lambda z: 0.5 * jax.nn.relu(z), x @ w) @ a

    # What is compared with a number keeps its size.
    assert found(until, (3, 2), (2, 1)) == []

    def counted(x, w, a):
        return jax.lax.while_loop(lambda c: c[0] < x.sum(), lambda c: (c[0] + 1, jax.nn.relu(c[1])), (0, x @ w))[1] @ a

    assert len(found(counted, (3, 2), (2, 1))) == 2


def test_each_layer_of_a_long_stack_has_units_of_its_own():
    def apply(x, w, a):
        return jax.lax.scan(lambda h, each: (jax.nn.relu(h @ each), None), x, w)[0] @ a

    # Too many elements to have an exponent each before it is known that layers are read one by one.
    assert len(found(apply, (40, 11, 11), (11, 1), x=np.ones((2, 11)))) == 40 * 11


def test_what_is_written_into_an_array_and_summed_by_place_is_as_large_as_it():
    def apply(x, w, u, a):
        gathered = jax.ops.segment_sum(jax.nn.relu(x @ w), np.array([0, 1, 0, 1, 0]), 2)
        written = jax.lax.fori_loop(0, 2, lambda i, z: z.at[i].set(gathered[i] @ u), np.zeros((2, 3)))
        return jax.nn.relu(written) @ a

    assert len(found(apply, (3, 4), (4, 3), (3, 1))) == 4 + 3

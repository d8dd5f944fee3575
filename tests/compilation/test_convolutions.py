"""Convolutions in the order of axes that a processor is fast in: the same numbers, and no other order is left."""

import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.compilation import filter_jit, jit
from dynascope.compilation.convolutions import with_fast_convolutions

RNG = np.random.default_rng(0)


@st.composite
def convolutions(draw):
    """Images, filters, and the arguments of a convolution, its axes in any order."""
    space = draw(st.integers(1, 3))
    groups, inputs, outputs, batch = (draw(st.integers(1, 2)) for _ in range(4))
    over = draw(st.sampled_from(["none", "features", "samples"]))
    images = [batch * (groups if over == "samples" else 1), inputs * (groups if over == "features" else 1)]
    filters = [outputs * (1 if over == "none" else groups), inputs]
    orders = [tuple(draw(st.permutations(range(space + 2)))) for _ in range(3)]

    def placed(sizes, order):
        return RNG.normal(size=[size for _, size in sorted(zip(order, sizes, strict=True))])

    several = st.tuples(*[st.integers(1, 2)] * space)
    arguments = {
        "window_strides": draw(several),
        "padding": [draw(st.tuples(st.integers(0, 2), st.integers(0, 2))) for _ in range(space)],
        "lhs_dilation": draw(several),
        "rhs_dilation": draw(several),
        "feature_group_count": groups if over == "features" else 1,
        "batch_group_count": groups if over == "samples" else 1,
        "dimension_numbers": jax.lax.ConvDimensionNumbers(*orders),
    }
    sizes = [draw(st.integers(3, 5)) for _ in range(space)], [draw(st.integers(1, 2)) for _ in range(space)]
    return placed(images + sizes[0], orders[0]), placed(filters + sizes[1], orders[1]), arguments


@pytest.mark.slow
@given(convolutions())
def test_computes_the_same_with_axes_in_any_order(case):
    images, filters, arguments = case

    def convolved(images, filters):
        return jax.lax.conv_general_dilated(images, filters, **arguments)

    with jax.enable_x64(True):
        expected, found = (each(images, filters) for each in (convolved, with_fast_convolutions(convolved)))
    np.testing.assert_allclose(found, expected, atol=1e-12)  # of sums of at most 4 · 8 products of order one


def steps(images, filters, count):
    """Gradient descent in a loop, on an image that is convolved with two strides and halved between."""

    def loss(filters):
        def convolved(images, stride):
            return jax.lax.conv(images, filters, (stride, stride), "SAME")

        return jnp.sum(convolved(jax.nn.relu(convolved(images, 2)), 1) ** 2)

    return jax.lax.fori_loop(0, count, lambda _, now: now - 0.001 * jax.grad(loss)(now), filters)


ARGUMENTS = RNG.normal(size=(3, 4, 6, 6)).astype(np.float32), RNG.normal(size=(4, 4, 3, 3)).astype(np.float32) / 6


@pytest.mark.parametrize("members", [None, 2])
def test_training_in_a_loop_has_the_fast_order_only(members):
    images, filters = ARGUMENTS
    training = steps
    if members:
        filters, training = np.stack([filters, filters / 2]), jax.vmap(steps, (None, 0, None))

    def orders(function):
        lowered = jax.jit(function).lower(images, filters, 3).as_text()
        return set(re.findall(r"dim_numbers = (\[.*?\]->\[.*?\])", lowered))

    assert len(orders(training)) > 1
    assert orders(with_fast_convolutions(training)) == {"[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"}
    # Three steps change the filters by a tenth, and sums of 300 numbers of single precision are rounded otherwise.
    np.testing.assert_allclose(jit(training)(images, filters, 3), training(images, filters, 3), rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("error")
def test_transformed_functions_and_names_of_arguments_are_kept():
    slope = filter_jit(eqx.filter_grad(lambda x: jnp.sin(x)))
    assert float(slope(jnp.asarray(0.0))) == 1.0
    times = jit(lambda x, count: x * len(range(count)), static_argnames="count")
    assert float(times(2.0, count=3)) == 6.0


def test_what_is_no_array_goes_through():
    def named(image, name, *, twice):
        return {name: image * (2 if twice else 1), "name": name, "count": 3}

    assert with_fast_convolutions(named)(jnp.asarray(1.5), "image", twice=True) == {
        "image": 3.0,
        "name": "image",
        "count": 3,
    }

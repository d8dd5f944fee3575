"""`jit` and `filter_jit` compute what `jax.jit` computes, however they are called."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.compilation import filter_jit, jit


@jit
def wave(x):
    return jnp.sin(x) ** 2


def test_values_and_derivatives_agree_with_the_closed_form():
    x = jnp.linspace(0.0, 3.0, 5)
    expected, slope = np.sin(x) ** 2, np.sin(2 * x)
    np.testing.assert_allclose(wave(x), expected, atol=1e-6)
    np.testing.assert_allclose(jax.vmap(wave)(x), expected, atol=1e-6)
    np.testing.assert_allclose(jax.vmap(jax.grad(wave))(x), slope, atol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(wave)))(x), slope, atol=1e-6)
    np.testing.assert_allclose(jax.jvp(wave, (x,), (jnp.ones(5),))[1], slope, atol=1e-6)
    np.testing.assert_allclose(jax.lax.map(wave, x), expected, atol=1e-6)


def test_it_can_be_called_with_numbers_inside_another_compiled_function():
    assert float(jax.jit(lambda x: wave(2.0) + x)(1.0)) == pytest.approx(1 + np.sin(2) ** 2, rel=1e-6)


def test_errors_of_the_function_reach_the_caller():
    def fail(x):
        raise ValueError("an error of the function itself")

    with pytest.raises(ValueError, match="of the function itself"):
        jit(fail)(1.0)


def test_static_arguments_are_part_of_the_program():
    assert float(jit(lambda x, power: x**power, static_argnames="power")(3.0, power=2)) == 9
    assert filter_jit(lambda x, name: {name: 2 * x})(jnp.asarray(1.0), "twice") == {"twice": 2}

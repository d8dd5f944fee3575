import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.compilation import without_callbacks


def checked(x):
    x = eqx.error_if(x, jnp.any(x < 0), "x is negative")
    return {"root": jnp.sqrt(x), "pair": (jnp.sum(x), eqx.error_if(x, x[0] > 9, "x begins too late")[::-1])}


def text(function, *arguments):
    return jax.jit(function).lower(*arguments).as_text()


def test_the_program_calls_python_no_more_and_computes_the_same_bits():
    x = np.linspace(0.1, 3, 7)
    assert "callback" in text(checked, x)
    assert "callback" not in text(without_callbacks(checked), x)
    before, after = jax.jit(checked)(x), jax.jit(without_callbacks(checked))(x)
    assert jax.tree.structure(before) == jax.tree.structure(after)
    for one, other in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_was_to_be_checked_is_computed_as_it_is():
    with pytest.raises(Exception, match="x is negative"):
        eqx.filter_jit(checked)(jnp.asarray([-1.0, 4.0]))
    assert np.isnan(jax.jit(without_callbacks(checked))(jnp.asarray([-1.0, 4.0]))["root"][0])


def test_it_can_be_batched_and_closes_over_what_is_traced():
    def scaled(rows, factor):
        return jax.vmap(without_callbacks(lambda row: checked(row * factor)["root"]))(rows)

    rows = np.arange(1.0, 7.0).reshape(2, 3)
    assert "callback" not in text(scaled, rows, 4.0)
    # The root of a product of floats, each rounded once.
    np.testing.assert_allclose(jax.jit(scaled)(rows, 4.0), 2 * np.sqrt(rows), rtol=1e-6)


def test_checks_inside_loops_are_found():
    def doubled(x):
        return jax.lax.fori_loop(0, 3, lambda _, y: eqx.error_if(2 * y, y > 100, "too large"), x)

    assert "callback" in text(doubled, 1.0)
    assert "callback" not in text(without_callbacks(doubled), 1.0)
    assert without_callbacks(doubled)(1.0) == 8


def test_a_call_that_is_no_check_is_refused():
    def asked(x):
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct((), jnp.float32), x)

    with pytest.raises(NotImplementedError, match="pure_callback"):
        without_callbacks(asked)(jnp.float32(1))

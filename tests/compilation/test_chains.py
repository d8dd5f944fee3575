import equinox as eqx
import jax
import numpy as np
from jax.extend.core import jaxpr_as_fun

from dynascope.compilation.chains import rolled

CALLS = 30


def after(x, calls):
    between = [x]
    for _ in range(calls):
        between.append(eqx.internal.nextafter(between[-1]))
    return between


def last(x):
    return jax.jit(lambda x: after(2 * x, CALLS)[-1])(x)


def last_and_the_one_before(x):
    return sum(after(2 * x, CALLS)[-2:])


def short(x):
    return after(2 * x, 5)[-1]


def in_loops(function):
    def looped(x):
        program = jax.make_jaxpr(function)(x)
        return jaxpr_as_fun(rolled(program))(x)[0]

    return looped


def test_a_loop_computes_the_same_bits_as_the_chain():
    x = np.float32(0.25)
    for function in (last, last_and_the_one_before, short):
        assert jax.jit(in_loops(function))(x) == jax.jit(function)(x) != function(x + 1)


def test_its_derivatives_are_those_of_the_chain():
    looped = in_loops(last)
    values, slopes = jax.jit(jax.vmap(jax.value_and_grad(looped)))(np.array([0.25, 1.0], np.float32))
    np.testing.assert_array_equal(values, [last(np.float32(0.25)), last(np.float32(1.0))])
    np.testing.assert_array_equal(slopes, [2.0, 2.0])
    assert jax.jit(jax.jacfwd(looped))(0.25) == 2

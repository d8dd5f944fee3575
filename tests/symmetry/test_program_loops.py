"""How loops in programs of JAX are read."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.symmetry.program_loops import scanned
from dynascope.symmetry.scaling import rescalings


def test_what_a_loop_sees_carries_and_reads_row_by_row_is_told_apart():
    fixed, start, rows = jnp.ones((2, 3)), jnp.ones(2), jnp.ones((5, 3))

    def loop(fixed, start, rows):
        return jax.lax.scan(lambda state, row: (jnp.tanh(state + fixed @ row), state.sum()), start, rows)

    (line,) = jax.make_jaxpr(loop)(fixed, start, rows).eqns
    shapes = [[each.aval.shape for each in part] for part in scanned(line.params, line.invars)]
    assert shapes == [[(2, 3)], [(2,)], [(5, 3)]]


@pytest.mark.parametrize("rows", [jnp.unstack, list, lambda z: [z[0], z[1], z[2]], lambda z: jnp.unstack(z.T, axis=1)])
def test_layers_that_are_taken_out_of_a_stack_have_units_of_their_own_however_that_is_written(rows):
    def apply(weights, x):
        for each in rows(weights):
            x = jax.nn.relu(x * each)
        return x

    program = jax.make_jaxpr(apply)(np.ones((3, 4)), np.ones((5, 4)))
    # Of each of four units the three weights may be rescaled against each other.
    assert len(rescalings(program, 1)) == 2 * 4


@pytest.mark.parametrize("repeated", [lambda z: jnp.tile(z, (1, 2)), lambda z: jnp.concatenate([z, z], 1)])
def test_units_that_are_repeated_are_the_same_units_however_that_is_written(repeated):
    def apply(params, x):
        return repeated(jax.nn.relu(x @ params[0])) @ params[1]

    program = jax.make_jaxpr(apply)([np.ones((3, 4)), np.ones((8, 1))], np.ones((5, 3)))
    assert len(rescalings(program, 2)) == 4

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.probes.array_namespace import array_namespace, holds


@pytest.mark.parametrize("library", ["numpy", "jax.numpy", "torch"])
def test_each_library_computes_with_its_own_functions(library):
    make = pytest.importorskip(library, reason="PyTorch is an optional extra").asarray
    array = make([3.0, 4.0])
    xp = array_namespace(array, array)
    assert isinstance(xp.sqrt(array), type(array))
    assert float(xp.linalg.vector_norm(array)) == 5


def test_arrays_of_two_libraries_are_refused():
    with pytest.raises(InputError, match="different libraries"):
        array_namespace(np.ones(2), jnp.ones(2))


@pytest.mark.parametrize("value", [[1.0, 2.0], 3.0, "text"])
def test_what_is_no_array_is_refused(value):
    with pytest.raises(InputError, match="not understood"):
        array_namespace(value)


def test_a_condition_that_is_still_unknown_holds():
    assert holds(np.True_)
    assert not holds(np.False_)
    traced = []
    jax.jit(lambda x: traced.append(holds(x > 0)) or x)(1.0)
    assert traced == [True]

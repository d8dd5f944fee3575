import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.validation import array_namespace, holds, require_axes, require_finite_values, require_labels

LIBRARIES = ["numpy", "jax.numpy", "torch"]


@pytest.fixture(params=LIBRARIES)
def make(request):
    return pytest.importorskip(request.param, reason="PyTorch is an optional extra").asarray


@pytest.mark.slow
def test_each_library_computes_with_its_own_functions(make):
    array = make([3.0, 4.0])
    xp = array_namespace(array, array)
    assert isinstance(xp.sqrt(array), type(array))
    assert float(xp.linalg.vector_norm(array)) == 5


def test_arrays_of_numpy_and_jax_are_computed_with_by_jax():
    assert array_namespace(np.ones(2), jnp.ones(2)) is jnp


def test_arrays_of_numpy_and_pytorch_are_refused_by_name():
    torch = pytest.importorskip("torch", reason="PyTorch is an optional extra")
    with pytest.raises(InputError, match="the arrays first and second belong to different libraries") as caught:
        array_namespace(first=np.ones(2), second=torch.ones(2))
    assert caught.value.argument == "first"


@pytest.mark.parametrize("value", [[1.0, 2.0], 3.0, "text"])
def test_what_is_no_array_is_refused(value):
    with pytest.raises(InputError, match="not supported"):
        array_namespace(value)


def test_a_condition_that_is_still_unknown_holds():
    assert holds(np.True_)
    assert not holds(np.False_)
    traced = []
    jax.jit(lambda x: traced.append(holds(x > 0)) or x)(1.0)
    assert traced == [True]


@pytest.mark.slow
def test_the_axes_of_an_array_pass_with_its_shape(make):
    assert require_axes("features", make([[1.0], [2.0]]), 2) == (2, 1)
    assert require_axes("features", make(1.0), 0) == ()


@pytest.mark.slow
@pytest.mark.parametrize("values", [[1.0, 2.0], [[[1.0]]], [[], []]])
def test_other_axes_or_an_empty_one_are_refused_by_name(make, values):
    with pytest.raises(InputError, match=r"features has shape .* 2 axes") as caught:
        require_axes("features", make(values), 2)
    assert caught.value.argument == "features"


@pytest.mark.slow
def test_finite_floating_point_numbers_pass(make):
    require_finite_values("weights", make([1, 2]))
    require_finite_values("weights", make([1.0, -2.0]), floating=True)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("floating", [False, True])
def test_values_that_are_not_finite_are_refused_by_name(make, floating, value):
    with pytest.raises(InputError, match="weights contains values that are not finite") as caught:
        require_finite_values("weights", make([1.0, value]), floating=floating)
    assert caught.value.argument == "weights"


@pytest.mark.parametrize("values", [[1, 2], [True], [1j]])
def test_numbers_of_another_kind_are_no_real_values(make, values):
    with pytest.raises(InputError, match="weights has values of type") as caught:
        require_finite_values("weights", make(values), floating=True)
    assert caught.value.argument == "weights"


def test_values_that_jax_traces_are_not_seen():
    jax.jit(lambda x: require_finite_values("weights", x) or x)(jnp.nan)


def test_numbers_of_classes_pass(make):
    require_labels("labels", make([2, 0]), 2)
    require_labels("labels", make([2, 0]), 2, classes=3)


@pytest.mark.parametrize(
    ("labels", "value", "remedy"),
    [
        ([0, 1, 1], (3,), r"give one label for each sample, of shape \(2,\)"),
        ([[0], [1]], (2, 1), "give one label for each sample"),
        ([0.0, 1.0], None, "give integers that number the classes from 0"),
        ([True, False], None, "give integers"),
        ([0, -1], (-1, 0), "number the 3 classes from 0"),
        ([3, 1], (1, 3), "number the 3 classes from 0"),
    ],
)
def test_what_numbers_no_class_of_a_sample_is_refused_by_name(make, labels, value, remedy):
    with pytest.raises(InputError, match=rf"^targets (has|ranges) .*: {remedy}") as caught:
        require_labels("targets", make(labels), 2, classes=3)
    assert caught.value.argument == "targets"
    assert caught.value.value == (str(make(labels).dtype) if value is None else value)


def test_labels_below_zero_are_refused_however_many_classes_there_are(make):
    with pytest.raises(InputError, match="ranges from -1 to 5"):
        require_labels("labels", make([5, -1]), 2)


def test_labels_that_jax_traces_are_not_seen():
    jax.jit(lambda x: require_labels("labels", x, 2, classes=3) or x)(np.array([-1, 7]))

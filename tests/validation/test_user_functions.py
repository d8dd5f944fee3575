import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.errors import DivergenceWarning, InputError
from dynascope.tasks import Task
from dynascope.training import Batches, Descent, Latest, Recursion, Sampled, Total, descend

TASK = Task([[1.0], [1.0]], [[1.0], [1.0]])


class Line(eqx.Module):
    w: np.ndarray

    def __call__(self, x):
        return self.w * x


class Unhashable:
    __hash__ = None

    def __call__(self, *arguments):
        return arguments[-1]


pytestmark = pytest.mark.usefixtures("unchecked_types")
LINE = Line(np.array(0.0))


def one(first):
    return first


def attribute(first, *others):
    return first.none_such


def known(first, *others):
    return float(others[-1].sum() if others else first.w)


def recursion(start, following):
    return {"a": Recursion(lambda weights: start, following)}


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *[("loss", value) for value in (one, attribute, known, Unhashable())],
        *[("statistics", value) for value in (["a"], {"a": one}, {3: (one, ())}, {"a": (one, None)})],
        *[
            ("statistics", {"a": (value, ())})
            for value in (3, attribute, known, Unhashable(), lambda: 1, lambda n: None)
        ],
        ("statistics", {3: Total(one)}),
        *[("statistics", {"a": Latest(value)}) for value in (attribute, lambda: 1, lambda step: step.update)],
        ("statistics", recursion(0.0, lambda state: state)),
        ("statistics", recursion(np.zeros(2), lambda state, step: state[:1])),
        ("statistics", recursion(0, lambda state, step: state + step.loss)),
        ("probe", 3),
        ("probe", lambda network: None),
        ("probe", lambda network: {"a": 1.0}),
        ("probe", lambda network: {"diverged_step": ((), 1.0)}),
    ],
)
def test_a_function_that_does_not_fit_is_told_by_its_argument(argument, value):
    with pytest.raises(InputError) as caught:
        descend(TASK, LINE, Descent(**{"steps": 2, "learning_rate": 0.1, argument: value}))
    assert caught.value.argument == argument


@pytest.mark.parametrize(
    "augmentation",
    ["flip", one, attribute, known, Unhashable(), lambda key, inputs: inputs.astype(jnp.int32)],
)
def test_an_augmentation_that_does_not_fit_is_told(augmentation):
    with pytest.raises(InputError) as caught:
        descend(TASK, LINE, Descent(learning_rate=0.1, steps=2, batches=Batches(augmentation=augmentation)))
    assert caught.value.argument == "augmentation"


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *[("learning_rate", value) for value in ({"w": "a"}, {"w": None}, {0.1}, [0.1, "a"], [[1], [1, 2]])],
        *[("steps", value) for value in (2.5, 2**31)],
        *[("save", value) for value in ([[1], [1, 2]],)],
        *[("checkpoint", value) for value in (3, b"run.npz")],
    ],
)
def test_a_number_or_name_that_is_none_is_told_by_its_argument(argument, value):
    with pytest.raises(InputError) as caught:
        descend(TASK, LINE, Descent(**{"steps": 2, "learning_rate": 0.1, argument: value}))
    assert caught.value.argument == argument


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *[("scale", value) for value in ("a", {"w": 1})],
        *[("seed", value) for value in (2**32, -1)],
    ],
)
def test_an_argument_of_descend_itself_is_told_too(argument, value):
    with pytest.raises(InputError) as caught:
        descend(TASK, LINE, Descent(learning_rate=0.1, steps=2), **{argument: value})
    assert caught.value.argument == argument


@pytest.mark.parametrize("value", ["no", np.ones(2)])
def test_a_replacement_that_is_neither_true_nor_false_is_told(value):
    with pytest.raises(InputError) as caught:
        Batches(1, replacement=value)
    assert caught.value.argument == "replacement"


def positive(step):
    return step.loss > 0


@pytest.mark.slow
def test_all_that_is_told_of_a_member_ends_where_it_diverged():
    with pytest.warns(DivergenceWarning):
        run = descend(
            TASK,
            LINE,
            Descent(
                learning_rate=[0.5, 3.0],
                steps=30.0,
                save=[0, 5, 30],
                statistics={"sampled": Sampled(lambda step: step.loss, [1, 29]), "count": Total(positive)},
                probe=lambda network: {"reached": ((), network.w)},
            ),
        )
    for name, length in [("sampled", 1), ("count", 2), ("reached", 2)]:
        assert np.isnan(run[name].to_numpy()).sum(axis=1).tolist() == [0, 1], name
        assert np.isfinite(run[name].to_numpy()[1, :length]).all()
    assert run["count"].to_numpy()[0].tolist() == [0, 5, 30]

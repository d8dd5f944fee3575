import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.errors import DivergenceWarning, InputError
from dynascope.tasks import Task
from dynascope.training import Latest, Recursion, Sampled, Total, descend

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
        *[("augmentation", value) for value in ("flip", one, attribute, known, Unhashable())],
        ("augmentation", lambda key, inputs: inputs.astype(jnp.int32)),
        *[("statistics", value) for value in (["a"], {"a": one}, {3: (one, ())}, {"a": (one, None)})],
        *[
            ("statistics", {"a": (value, ())})
            for value in (3, attribute, known, Unhashable(), lambda: 1, lambda n: None)
        ],
        *[("step_statistics", value) for value in (["a"], {"a": one}, {3: Total(one)})],
        *[("step_statistics", {"a": Latest(value)}) for value in (attribute, lambda: 1, lambda step: step.update)],
        ("step_statistics", recursion(0.0, lambda state: state)),
        ("step_statistics", recursion(np.zeros(2), lambda state, step: state[:1])),
        ("step_statistics", recursion(0, lambda state, step: state + step.loss)),
        ("probe", 3),
        ("probe", lambda network: None),
        ("probe", lambda network: {"a": 1.0}),
        ("probe", lambda network: {"diverged_step": ((), 1.0)}),
        ("progress", "bar"),
    ],
)
def test_a_function_that_does_not_fit_is_told_by_its_argument(argument, value):
    with pytest.raises(InputError) as caught:
        descend(LINE, TASK, **{"steps": 2, "learning_rate": 0.1, argument: value})
    assert caught.value.argument == argument


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *[("learning_rate", value) for value in ({"w": "a"}, {"w": None}, {0.1}, [0.1, "a"], [[1], [1, 2]])],
        *[("scale", value) for value in ("a", {"w": 1})],
        *[("steps", value) for value in (2.5, 2**31)],
        *[("record_steps", value) for value in ([[1], [1, 2]],)],
        *[("seed", value) for value in (2**32, -1)],
        *[("replacement", value) for value in ("no", np.ones(2))],
        *[("checkpoint", value) for value in (3, b"run.npz")],
    ],
)
def test_a_number_or_name_that_is_none_is_told_by_its_argument(argument, value):
    with pytest.raises(InputError) as caught:
        descend(LINE, TASK, **{"steps": 2, "learning_rate": 0.1, argument: value})
    assert caught.value.argument == argument


def positive(step):
    return step.loss > 0


@pytest.mark.slow
def test_all_that_is_told_of_a_member_ends_where_it_diverged():
    with pytest.warns(DivergenceWarning):
        run = descend(
            LINE,
            TASK,
            steps=30.0,
            learning_rate=[0.5, 3.0],
            record_steps=[0, 5, 30],
            step_statistics={"sampled": Sampled(lambda step: step.loss, [1, 29]), "count": Total(positive)},
            probe=lambda network: {"reached": ((), network.w)},
        )
    for name, length in [("sampled", 1), ("count", 2), ("reached", 2)]:
        assert np.isnan(run[name].to_numpy()).sum(axis=1).tolist() == [0, 1], name
        assert np.isfinite(run[name].to_numpy()[1, :length]).all()
    assert run["count"].to_numpy()[0].tolist() == [0, 5, 30]

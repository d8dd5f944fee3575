import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.networks import MLP
from dynascope.tasks import Images, Labelled, SparseParity, Task
from dynascope.training import Descent, descend

draw = np.random.default_rng(0)
INPUTS = draw.normal(size=(8, 3))
LABELS = np.arange(8) % 2
DATA = Labelled(INPUTS, LABELS)
OTHER = Labelled(draw.normal(size=(8, 3)), LABELS)
NETWORKS = [MLP((3, 4, 2), seed=seed) for seed in range(2)]
OPTIONS = {"steps": 6, "learning_rate": 0.1, "loss": "cross_entropy", "save": [0, 6]}


def outputs(network, inputs, targets):
    return network(inputs) + 0 * targets[:, None]


SEEN = {"outputs": (outputs, ["sample", "target"]), "norm": (lambda network: jnp.sum(network.weights[0] ** 2), [])}


@pytest.mark.slow
def test_every_network_may_have_data_of_its_own():
    run, ends = descend(
        [DATA, OTHER], NETWORKS, Descent(statistics=SEEN, test=[OTHER, DATA], **OPTIONS), return_networks=True
    )
    for seed, (own, held_out) in enumerate([(DATA, OTHER), (OTHER, DATA)]):
        single, end = descend(
            own, NETWORKS[seed], Descent(statistics=SEEN, test=held_out, **OPTIONS), return_networks=True
        )
        for name in ("loss", "accuracy", "test_loss", "test_accuracy", "outputs"):
            # The same steps with sums in another order.
            assert run[name].to_numpy()[seed] == pytest.approx(single[name].to_numpy(), abs=1e-13)
        assert ends.weights[0][seed] == pytest.approx(end.weights[0], abs=1e-13)
    assert not np.allclose(run["outputs"][0, 0], run["outputs"][1, 0])


@pytest.mark.slow
def test_statistics_with_data_get_the_reference_in_evaluation():
    reference = Labelled(INPUTS[:3], LABELS[:3])
    run, end = descend(
        DATA, NETWORKS[0], Descent(batches=2, statistics=SEEN, reference=reference, **OPTIONS), return_networks=True
    )
    assert run["outputs"].shape == (2, 3, 2)
    assert run["outputs"].to_numpy()[1] == pytest.approx(np.asarray(end(INPUTS[:3])), abs=1e-6)


@pytest.mark.slow
def test_tokens_stay_whole_numbers():
    class Embedded(eqx.Module):
        table: np.ndarray

        def __call__(self, tokens):
            return jnp.asarray(self.table)[tokens].sum(axis=1)

    tokens = draw.integers(5, size=(8, 3))
    run = descend(Labelled(tokens, LABELS), Embedded(draw.normal(size=(5, 2))), Descent(**OPTIONS))
    assert run.loss[1] < run.loss[0]


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"task": [DATA]}, "task"),
        ({"task": [DATA, Labelled(INPUTS[:6], LABELS[:6])]}, "task"),
        ({"task": [DATA, SparseParity(skills=2, bits=4, relevant_bits=2)]}, "task"),
        ({"task": Images(draw.integers(9, size=(4, 2, 2, 1)).astype(np.uint8), np.arange(4) % 2, ("a", "b"))}, "task"),
        ({"test": SparseParity(skills=2, bits=4, relevant_bits=2)}, "test"),
        ({"test": [DATA, OTHER, DATA]}, "test"),
        ({"compute_dtype": "bfloat16"}, "compute_dtype"),
        ({"compute_dtype": "float8"}, "compute_dtype"),
        ({"statistics": {"loss": (outputs, ["sample", "target"])}}, "statistics"),
        ({"network": MLP((3, 4, 1)), "task": DATA}, "network"),
        ({"network": MLP((2, 4, 2)), "task": DATA}, "network"),
        ({"task": Task(INPUTS, INPUTS[:, :2])}, "task"),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_parts_that_do_not_fit_are_refused(options, argument):
    parts = {"network": NETWORKS, "task": DATA, **options}
    network, task = parts.pop("network"), parts.pop("task")
    with pytest.raises(InputError) as caught:
        descend(task, network, Descent(**OPTIONS, **parts))
    assert caught.value.argument == argument

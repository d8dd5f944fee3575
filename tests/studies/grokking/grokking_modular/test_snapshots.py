import jax
import numpy as np

from dynascope.networks import TwoLayer
from dynascope.studies.grokking.grokking_modular.snapshots import WEIGHTS, unravelled
from dynascope.tasks import Task
from dynascope.training import Descent, descend

NETWORKS = [TwoLayer(3, 4, 2, activation="relu", seed=seed) for seed in range(2)]
TASK = Task(np.random.default_rng(0).normal(size=(6, 3)), np.eye(6)[:, :2])


def kept(steps):
    run, ends = descend(
        TASK,
        NETWORKS,
        Descent(learning_rate=0.1, steps=steps[-1], save=steps, statistics=WEIGHTS),
        return_networks=True,
    )
    return unravelled(NETWORKS[0], run["weights"].to_numpy()), ends


def test_snapshots_do_not_depend_on_the_other_recorded_steps():
    every, ends = kept([0, 4, 9])
    np.testing.assert_array_equal(
        every.first[:, 0], np.stack([each.first for each in NETWORKS]).astype(every.first.dtype)
    )
    alone, _ = kept([1, 3, 9])
    for mine, other, last in zip(*map(jax.tree.leaves, (every, alone, ends)), strict=True):
        np.testing.assert_array_equal(mine[:, -1], last)
        np.testing.assert_array_equal(other[:, -1], last)

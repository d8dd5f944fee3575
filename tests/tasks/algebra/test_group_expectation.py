from __future__ import annotations

import jax
import numpy as np
import pytest

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.groups import cyclic, dihedral, find_group
from dynascope.groups.encodings import encoding_from_fourier
from dynascope.networks import TwoLayer
from dynascope.tasks.algebra.group_composition import group_composition
from dynascope.tasks.algebra.group_expectation import GroupComposition
from dynascope.tasks.algebra.modular_addition import ModularAddition

# Sums of some thousand terms of order one, in float64.
ROUNDING = 1e-12


def of_mean_zero(n: int, seed: int) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=n)
    return x - x.mean()


def network_of(n: int, seed: int = 0) -> TwoLayer:
    return TwoLayer(2 * n, 7, n, activation="power-2", seed=seed)


def losses_and_gradients(networks: list[TwoLayer], tasks) -> list:
    """For each network what each task says, from one program for all of them."""

    @jit
    def of_all(rows):
        return [
            jax.value_and_grad(lambda rows, task=task: task.loss(networks[0].with_neurons(rows)))(rows)
            for task in tasks
        ]

    with jax.enable_x64(True):
        return [jax.device_get(of_all(network.neurons)) for network in networks]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "amplitudes"),
    [
        ("C6", None),
        ("Q8", None),
        ("C2xS3", None),
        # Encodings of a few irreps.
        ("D5", {"2d-2": 1.3}),
        ("Q8", {"2d": 0.7}),
        ("A4", {"1d": 2.0, "3d": [1.0, 0.5, 0.0]}),
        ("C8", {"frequency 4": 1}),
    ],
)
def test_it_is_the_mean_over_all_pairs(name, amplitudes):
    group = find_group(name)
    n = group.order
    x = of_mean_zero(n, n) if amplitudes is None else encoding_from_fourier(group, amplitudes, seed=1)
    tasks = GroupComposition(group, x), group_composition(group, x)
    for one, mean in losses_and_gradients([network_of(n, seed) for seed in range(3)], tasks):
        (loss, gradient), (mean_loss, mean_gradient) = one, mean
        assert loss == pytest.approx(mean_loss, rel=ROUNDING)
        np.testing.assert_allclose(gradient, mean_gradient, atol=ROUNDING * np.abs(mean_gradient).max())


@pytest.mark.slow
def test_on_a_cyclic_group_it_is_modular_addition():
    x = of_mean_zero(9, 0)
    tasks = GroupComposition(cyclic(9), x), ModularAddition(x)
    [[(loss, gradient), (other_loss, other_gradient)]] = losses_and_gradients([network_of(9)], tasks)
    assert loss == pytest.approx(other_loss, rel=ROUNDING)
    np.testing.assert_allclose(gradient, other_gradient, atol=ROUNDING * np.abs(other_gradient).max())


def test_it_describes_itself_as_the_samples_do():
    group, x = dihedral(3), of_mean_zero(6, 0)
    expected, sampled = GroupComposition(group, x), group_composition(group, x)
    assert expected.name == sampled.name
    counts = ("samples", "input_dimension", "output_dimension")
    assert [expected.attributes()[each] for each in counts] == [sampled.attributes()[each] for each in counts]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.eye(6)[0], "mean 0.166667: subtract the mean"),
        (np.zeros(6), "the encoding is zero"),
        (np.ones(5), "encoding has shape"),
        ([np.nan, 0, 0, 0, 0, 0], "encoding"),
    ],
)
def test_a_bad_encoding_is_refused(x, message):
    with pytest.raises(InputError, match=message):
        GroupComposition(dihedral(3), x)


@pytest.mark.parametrize(
    "network",
    [
        TwoLayer(12, 4, 6, activation="power-3"),
        TwoLayer(12, 4, 6, activation="relu-power-2"),
        TwoLayer(12, 4, 5, activation="quadratic"),
        TwoLayer(6, 4, 6, activation="quadratic"),
    ],
)
def test_another_network_is_refused(network):
    with pytest.raises(InputError, match='use TwoLayer\\(12, width, 6, activation="quadratic"\\)'):
        GroupComposition(dihedral(3), of_mean_zero(6, 0)).loss(network)

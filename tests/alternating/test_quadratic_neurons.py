import jax
import numpy as np

from dynascope.alternating.quadratic_neurons import error_moments, quadratic_slopes, slopes_by_moments
from dynascope.compilation import jit
from dynascope.flows.objective import Samples
from dynascope.networks import TwoLayer


def test_moments_give_the_slopes_that_samples_give():
    draw = np.random.default_rng(3)
    inputs, error = draw.normal(size=(40, 3)), draw.normal(size=(40, 2))
    network = TwoLayer(3, 4, 2, activation="quadratic", seed=1)

    @jit
    def slopes(rows):
        def utility(rows):
            return (network.with_neurons(rows)(inputs) * error).sum() / len(error)

        return jax.grad(utility)(rows), quadratic_slopes(network, error_moments(inputs, error), rows)

    with jax.enable_x64(True):
        by_samples, by_moments = slopes(np.asarray(network.neurons))
    # Sums of 40 products in another order.
    np.testing.assert_allclose(by_moments, by_samples, rtol=1e-12, atol=1e-13)


def test_moments_are_for_many_samples_and_for_squares_only():
    few, many = (Samples(np.ones((samples, 6)), np.ones((samples, 2))) for samples in (3, 300))
    cost = {name: TwoLayer(6, 4, 2, activation=name) for name in ("quadratic", "relu", "power-3")}
    assert slopes_by_moments(cost["quadratic"], few) == 1
    assert slopes_by_moments(cost["quadratic"], many) < 0.02  # 2 · 6 over 3 · 300 products
    assert slopes_by_moments(cost["relu"], many) == slopes_by_moments(cost["power-3"], many) == 1

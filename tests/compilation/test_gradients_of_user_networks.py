"""Functions that differentiate a user's network find the gradients that plain `jax.jit` finds.

Fast settings of XLA once recomputed the argument of a maximum with other rounding, so that no element equalled it.
Gradients of `max` and `min` over elementwise values were then NaN, or finite and wrong.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from dynascope import GradientFlow, flows, observe, training
from dynascope.probes.diffusion import top_curvatures
from dynascope.probes.kernel import neural_tangent_kernel
from dynascope.symmetry import check_identities, discover, find_symmetries
from dynascope.tasks import Task

BEFORE_POOLING = {
    "affine": lambda z: 1.3 * z * z + z,
    "centred": lambda z: z - z.mean(-1, keepdims=True),
    "layer norm": lambda z: (z - z.mean(-1, keepdims=True)) / jnp.sqrt(z.var(-1, keepdims=True) + 1e-3),
    "residual": lambda z: z + 0.3 * jnp.tanh(z),
}
POOLING = {"max": jnp.max, "min": jnp.min, "amax": jnp.amax}
RNG = np.random.default_rng(0)
TASK = Task(RNG.normal(size=(6, 3)), RNG.normal(size=(6, 2)))
LABELS = np.array([0, 1, 0, 1, 1, 0])


class Pooled(eqx.Module):
    first: jax.Array
    second: jax.Array
    before: str = eqx.field(static=True)
    pooling: str = eqx.field(static=True)

    def __call__(self, x):
        hidden = BEFORE_POOLING[self.before](x @ self.first).reshape(len(x), 2, 3)
        return POOLING[self.pooling](hidden, -1) @ self.second


@pytest.fixture(params=[(before, "max") for before in BEFORE_POOLING] + [("affine", "min"), ("residual", "amax")])
def network(request):
    rng = np.random.default_rng(1)
    with jax.enable_x64(True):
        yield Pooled(jnp.asarray(rng.normal(size=(3, 6)) / 2), jnp.asarray(rng.normal(size=(2, 2)) / 2), *request.param)


def loss(network):
    return 0.5 * jnp.mean(jnp.sum((network(TASK.inputs) - TASK.targets) ** 2, -1))


def apply(network, x):
    return network(x)


def flat(network):
    return np.asarray(ravel_pytree(network)[0])


def plain_flow(network, duration, steps=200):
    """The weights after gradient flow, by small Euler steps and plain `jax.jit`."""
    gradient = jax.jit(jax.grad(loss))
    for _ in range(steps):
        network = jax.tree.map(lambda w, g: w - duration / steps * g, network, gradient(network))
    return network


def test_descend(network):
    gradient, expected = jax.jit(jax.grad(loss)), network
    for _ in range(20):
        expected = jax.tree.map(lambda w, g: w - 0.02 * g, expected, gradient(expected))
    _, trained = training.descend(TASK, network, training.Descent(learning_rate=0.02, steps=20), return_networks=True)
    np.testing.assert_allclose(flat(trained), flat(expected), rtol=1e-12, atol=1e-13)


def test_gradient_flow(network):
    method = flows.GradientFlow(duration=0.1, solver=flows.Solver(relative_tolerance=1e-6))
    _, trained = flows.gradient_flow(TASK, network, method, return_networks=True)
    # The error of the Euler steps is their size times the curvature of the path.
    np.testing.assert_allclose(flat(trained), flat(plain_flow(network, 0.1)), atol=2e-3)


def test_observe(network):
    observed = observe(
        TASK,
        network,
        method=GradientFlow(duration=0.1),
        probes=[lambda network: {"first": (("feature", "neuron"), network.first)}],
    ).record
    np.testing.assert_allclose(observed["first"][-1], plain_flow(network, 0.1).first, atol=2e-3)


def test_margin_flow(network):
    start, unflatten = ravel_pytree(network)

    def level(weights):
        outputs = unflatten(weights)(TASK.inputs)
        rows = np.arange(len(LABELS))
        return -jax.nn.logsumexp(outputs[rows, 1 - LABELS] - outputs[rows, LABELS])

    value, slope = jax.jit(jax.value_and_grad(level))(start)
    step = 1e-4
    path = flows.margin_flow(apply, network, TASK.inputs, LABELS, levels=[float(value) + step])
    moved = (flat(jax.tree.map(lambda leaf: leaf[-1], path.parameters)) - start) / step
    # The change of direction within the step is of the order of the step.
    np.testing.assert_allclose(moved, slope / (slope @ slope), rtol=1e-2, atol=1e-2 * np.abs(moved).max())


def test_symmetries(network):
    # Subtracting the mean over hidden units cancels a shift along each of the three inputs.
    shifts = 3 if network.before in ("centred", "layer norm") else 0
    assert find_symmetries(apply, network, TASK.inputs).size >= shifts
    # Without brackets it takes seconds; the charges of shifts have the explicit form.
    assert discover(apply, network, TASK.inputs, levels=0).charges >= shifts


def test_identities(network):
    found = find_symmetries(apply, network, TASK.inputs).symmetries
    assert all(checked.holds for checked in check_identities(loss, network, found))


@pytest.mark.parametrize("algorithm", ["jacobian", "layerwise", "structured", "products"])
def test_tangent_kernel(network, algorithm):
    start, unflatten = ravel_pytree(network)
    jacobian = jax.jit(jax.jacrev(lambda weights: unflatten(weights)(TASK.inputs)))(start)
    found = neural_tangent_kernel(apply, network, TASK.inputs, algorithm=algorithm).values
    np.testing.assert_allclose(found, np.einsum("iap,jbp->iajb", jacobian, jacobian), rtol=1e-10, atol=1e-12)


def test_curvature(network):
    start, unflatten = ravel_pytree(network)
    hessian = jax.jit(jax.hessian(lambda weights: loss(unflatten(weights))))(start)
    expected = np.linalg.eigvalsh(hessian)[::-1][:3]
    np.testing.assert_allclose(top_curvatures(loss, network, 3).curvature, expected, rtol=1e-8, atol=1e-10)

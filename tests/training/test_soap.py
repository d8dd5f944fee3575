"""SOAP: exact steps in a known eigenbasis, an independent loop, equivariance, and an implementation for PyTorch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope import Task, TwoLayer, observe
from dynascope.errors import InputError
from dynascope.training import Descent, soap

DRAW = np.random.default_rng(0)
START = {"weights": DRAW.normal(size=(4, 3)), "bias": DRAW.normal(size=3)}
INPUTS, TARGETS = DRAW.normal(size=(5, 4)), DRAW.normal(size=(30, 5, 3))


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def loss(params, targets):
    return jnp.mean((jnp.tanh(INPUTS @ params["weights"] + params["bias"]) - targets) ** 2)


def trained(optimizer, start, gradients):
    """Parameters after one call for each gradient function."""
    params = jax.tree.map(jnp.asarray, start)
    state, update = optimizer.init(params), jax.jit(optimizer.update)
    for gradient in gradients:
        updates, state = update(gradient(params), state, params)
        params = jax.tree.map(jnp.add, params, updates)
    return params


def test_singular_vectors_of_a_quadratic_loss_are_kept_and_singular_values_follow_adam():
    # With ½‖W − T‖², all gradients have the singular vectors of the first. The tolerance allows for the rounding of
    # entries that vanish, which Adam magnifies by 1/ε per step; ε = 1e-8 would magnify it to order one in three steps.
    start, target = np.array([[1.0, 0.5], [-0.3, 0.8]]), np.array([[1.0, 0.2], [0.2, 0.5]])
    epsilon, beta, rate = 1e-2, 0.95, 0.1
    optimizer = soap(rate, eps=epsilon, weight_decay=0.0, every=1, basis="eigh")
    found = trained(optimizer, start, [lambda params: params - target] * 4)
    left, values, right = np.linalg.svd(start - target)
    mean = square = np.zeros(2)
    for k in (1, 2, 3):
        mean, square = beta * mean + (1 - beta) * values, beta * square + (1 - beta) * values**2
        values = values - rate * np.sqrt(1 - beta**k) / (1 - beta**k) * mean / (np.sqrt(square) + epsilon)
    np.testing.assert_allclose(found, target + left @ np.diag(values) @ right, atol=1e-10)


def test_matrices_follow_an_independent_loop_and_vectors_follow_adam():
    beta, rate, epsilon, decay = 0.95, 0.01, 1e-8, 0.1
    optimizer = soap(rate, weight_decay=decay, every=2, basis="eigh")
    found = trained(optimizer, START, [lambda params, each=each: jax.grad(loss)(params, each) for each in TARGETS])
    params = {name: each.copy() for name, each in START.items()}
    means = {name: np.zeros_like(each) for name, each in params.items()}
    squares = {name: np.zeros_like(each) for name, each in params.items()}
    moments, bases = [np.zeros((4, 4)), np.zeros((3, 3))], [np.eye(4), np.eye(3)]
    for k, targets in enumerate(TARGETS):
        slopes = {name: np.asarray(each) for name, each in jax.grad(loss)(params, targets).items()}
        if k > 0:
            factor = rate * np.sqrt(1 - beta**k) / (1 - beta**k)
            for name, slope in slopes.items():
                left, right = bases if name == "weights" else (np.eye(1), np.eye(3))
                means[name] = beta * means[name] + (1 - beta) * slope
                turned = np.atleast_2d(slope), np.atleast_2d(means[name])
                slope, mean = (left.T @ each @ right for each in turned)
                squares[name] = beta * squares[name] + (1 - beta) * slope.reshape(squares[name].shape) ** 2
                step = left @ (mean / (np.sqrt(np.atleast_2d(squares[name])) + epsilon)) @ right.T
                params[name] = (params[name] - factor * step.reshape(params[name].shape)) * (1 - rate * decay)
        matrix = slopes["weights"]
        moments = [
            beta * each + (1 - beta) * product
            for each, product in zip(moments, (matrix @ matrix.T, matrix.T @ matrix), strict=True)
        ]
        if k % 2 == 0:
            bases = [np.linalg.eigh(each)[1][:, ::-1] for each in moments]
    for name, each in params.items():
        np.testing.assert_allclose(found[name], each, rtol=1e-9)


def test_orthogonal_iteration_follows_an_implementation_for_pytorch():
    torch = pytest.importorskip("torch")
    other = pytest.importorskip("pytorch_optimizer")
    for every in (1, 10):
        params = {name: torch.nn.Parameter(torch.tensor(each)) for name, each in START.items()}
        optimizer = other.SOAP(list(params.values()), lr=0.01, weight_decay=0.1, precondition_frequency=every)
        for targets in TARGETS:
            optimizer.zero_grad()
            outputs = torch.tanh(torch.tensor(INPUTS) @ params["weights"] + params["bias"])
            ((outputs - torch.tensor(targets)) ** 2).mean().backward()
            optimizer.step()
        ours = soap(0.01, weight_decay=0.1, every=every)
        found = trained(ours, START, [lambda params, each=each: jax.grad(loss)(params, each) for each in TARGETS])
        for name, each in params.items():
            # The other implementation computes its orthogonal bases in single precision.
            np.testing.assert_allclose(found[name], each.detach().numpy(), atol=2e-7)


def test_rotations_of_rows_commute_with_the_steps_unless_moments_are_degenerate():
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]

    def defect(rows):
        start = np.random.default_rng(2).normal(size=(3, rows))
        targets = np.random.default_rng(3).normal(size=(20, rows, rows))

        def slope(params, each):
            return jax.grad(lambda weights: jnp.sum((weights.T @ weights - each) ** 2))(params)

        steps = [lambda params, each=each: slope(params, each) for each in targets]
        optimizer = soap(0.01, weight_decay=0.0, basis="eigh", every=1)
        return np.abs(rotation @ trained(optimizer, start, steps) - trained(optimizer, rotation @ start, steps)).max()

    assert defect(4) < 1e-8
    assert defect(1) > 1e-4


def test_ensembles_step_as_single_members_and_compute_eigenvectors_only_when_they_are_due():
    optimizer, starts = soap(0.01, every=3), jax.tree.map(lambda leaf: np.stack([leaf, 2 * leaf]), START)
    slopes = [lambda params, each=each: jax.grad(loss)(params, each) for each in TARGETS[:8]]
    alone = [trained(optimizer, jax.tree.map(lambda leaf, k=k: leaf[k], starts), slopes) for k in (0, 1)]
    params, state = starts, jax.vmap(optimizer.init)(starts)
    update = jax.vmap(optimizer.update)
    for slope in slopes:
        updates, state = update(jax.vmap(slope)(params), state, params)
        params = jax.tree.map(jnp.add, params, updates)
    for name, each in params.items():
        np.testing.assert_allclose(each, np.stack([member[name] for member in alone]), rtol=1e-12)
    # Branches that became selections would compute all eigenvectors at every step.
    program = str(jax.make_jaxpr(update)(starts, state, starts))
    assert program.index("cond[") < program.index("eigh[")


def test_a_network_trains_and_bad_input_is_named():
    task = Task(np.eye(2), np.diag([2.0, 1.0]))
    run = observe(task, TwoLayer(2, 10, 2), scale=0.3, method=Descent(soap(0.02), steps=300, save=[0, 300]))
    assert float(run["loss"][-1]) < 1e-4 * float(run["loss"][0])
    with pytest.raises(InputError, match="b1"):
        soap(0.1, b1=1.0)
    with pytest.raises(InputError, match="params is missing"):
        soap(0.1).update(jnp.eye(2), soap(0.1).init(jnp.eye(2)))

from __future__ import annotations

import importlib.util

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.networks import TwoLayer
from dynascope.probes.diffusion import noise_spectrum, top_curvatures
from dynascope.tasks import Task
from dynascope.theory import SGD
from dynascope.theory.noise import stationary_displacement

DRAW = np.random.default_rng(0)
X, Y = DRAW.normal(size=(12, 3)), DRAW.normal(size=(12, 2))
WEIGHTS = {"first": DRAW.normal(size=(3, 4)) / 2, "second": DRAW.normal(size=(4, 2)) / 2}


def outputs(weights):
    return jnp.tanh(X @ weights["first"]) @ weights["second"]


def squared(z):
    return jnp.sum((z - Y) ** 2) / len(X)


def loss(weights):
    return squared(outputs(weights))


FORMS = {"loss": loss}, {"loss": squared, "model": outputs, "gauss_newton": True}


@pytest.fixture(scope="module")
def matrices() -> tuple[np.ndarray, np.ndarray]:
    """The Hessian and the Gauss-Newton matrix of all twenty weights."""
    flat, unravel = jax.flatten_util.ravel_pytree(WEIGHTS)
    with jax.enable_x64(True):
        hessian, jacobian = (
            np.asarray(jit(derivative)(np.asarray(flat, float)))
            for derivative in (
                jax.hessian(lambda w: loss(unravel(w))),
                jax.jacobian(lambda w: outputs(unravel(w)).ravel()),
            )
        )
        return hessian, 2 / len(X) * jacobian.T @ jacobian


@pytest.mark.slow
def test_eigenvalues_are_those_of_the_matrices(matrices):
    with jax.enable_x64(True):
        for matrix, options in zip(matrices, FORMS, strict=True):
            found = top_curvatures(weights=WEIGHTS, count=3, **options)
            values, vectors = np.linalg.eigh(matrix)
            # Weights that have passed through single precision.
            np.testing.assert_allclose(found.curvature, values[:-4:-1], rtol=1e-5)
            np.testing.assert_allclose(np.abs(np.diag(found.directions @ vectors[:, :-4:-1])), 1, atol=1e-4)
            assert np.all(found.residual < 1e-6 * found.curvature[0])


@pytest.mark.slow
def test_displacements_over_the_noise_spectrum_are_those_of_the_whole_matrix(matrices):
    _, matrix = matrices
    noise = DRAW.normal(size=(3, 20))
    with jax.enable_x64(True):
        found = noise_spectrum(squared, WEIGHTS, noise, model=outputs, gauss_newton=True, products=20)
    assert found.noise.sum() == pytest.approx(np.sum(noise**2) / 3)
    values, vectors = np.linalg.eigh(matrix)
    along = np.mean((noise @ vectors) ** 2, axis=0)
    sgd = SGD(0.05, momentum=0.9, weight_decay=0.01)
    steps = [1, 10, 100, 10_000]
    np.testing.assert_allclose(
        stationary_displacement(np.maximum(found.curvature, 0), found.noise, steps, sgd),
        stationary_displacement(np.maximum(values, 0), along, steps, sgd),
        rtol=1e-4,  # of the weights in single precision
    )


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("curvlinops") is None, reason="curvlinops is not installed")
def test_pytorch_finds_the_same(matrices):
    import torch

    module = torch.nn.Sequential(
        torch.nn.Linear(3, 4, bias=False), torch.nn.Tanh(), torch.nn.Linear(4, 2, bias=False)
    ).double()
    with torch.no_grad():
        module[0].weight.copy_(torch.tensor(WEIGHTS["first"].T))
        module[2].weight.copy_(torch.tensor(WEIGHTS["second"].T))
    data = [(torch.tensor(X), torch.tensor(Y))]
    for matrix, form in zip(matrices, FORMS, strict=True):
        # The mean over samples and outputs, half of our sum over outputs.
        options = {"batches": data, "gauss_newton": form.get("gauss_newton", False)}
        found = top_curvatures(torch.nn.MSELoss(), module, 3, **options)
        np.testing.assert_allclose(2 * found.curvature, np.linalg.eigvalsh(matrix)[:-4:-1], rtol=1e-5)
        with jax.enable_x64(True):
            same = top_curvatures(weights=WEIGHTS, count=3, **form)
        np.testing.assert_allclose(2 * found.curvature, same.curvature, rtol=1e-9)
        assert np.all(found.residual < 1e-6 * found.curvature[0])
    for wrong in (iter(data), []):  # a stream would be empty from the second product on
        with pytest.raises(InputError, match="batches, of type"):
            top_curvatures(torch.nn.MSELoss(), module, 3, batches=wrong)


@pytest.mark.skipif(importlib.util.find_spec("curvlinops") is None, reason="curvlinops is not installed")
def test_arguments_of_the_other_framework_are_refused():
    import torch

    data = [(torch.ones(2, 3), torch.ones(2, 2))]
    for wrong in ({"model": outputs}, {"products": 9}):
        with pytest.raises(InputError) as caught:
            top_curvatures(torch.nn.MSELoss(), torch.nn.Linear(3, 2), 1, batches=data, **wrong)
        assert [caught.value.argument] == list(wrong)


@pytest.mark.slow
def test_a_loss_of_outputs_has_the_hessian_of_the_whole():
    with jax.enable_x64(True):
        whole, parts = top_curvatures(loss, WEIGHTS, 3), top_curvatures(squared, WEIGHTS, 3, model=outputs)
    np.testing.assert_allclose(whole.curvature, parts.curvature, rtol=1e-10)


def test_curvatures_of_fewer_directions_than_products_are_right():
    # Two samples, so that the Hessian has rank two of fifty, and eigenvalues are found again and again.
    rows = np.random.default_rng(1).normal(size=(2, 50))
    with jax.enable_x64(True):
        found = top_curvatures(lambda w: jnp.sum((rows @ w) ** 2) / 2, np.zeros(50), 4)
    right = np.linalg.eigvalsh(rows @ rows.T)[::-1]
    np.testing.assert_allclose(found.curvature, [*right, 0, 0], atol=1e-12 * right[0])


def test_the_curvature_of_a_network_is_that_of_its_strongest_mode():
    # With w = ab and ½ (s − ab)² at a = b = √s the Hessian is s (1 1; 1 1), whose largest eigenvalue is 2 s.
    root = np.diag([3.0, 1.0]) ** 0.5
    task, balanced = Task(np.eye(2) * 2**0.5, np.diag([3.0, 1.0]) * 2**0.5), TwoLayer(2, 2, 2)
    found = top_curvatures(task.loss, balanced.with_neurons(np.hstack([root, root])), 1)
    assert found.curvature == pytest.approx([6.0], rel=1e-6)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: top_curvatures(loss, WEIGHTS, 21), "count"),
        (lambda: top_curvatures(loss, WEIGHTS, 2, products=1), "products"),
        (lambda: top_curvatures(loss, WEIGHTS, 2, batches=[(X, Y)]), "batches"),
        (lambda: top_curvatures(loss, WEIGHTS, 2, gauss_newton=True), "model"),
        (lambda: top_curvatures(loss, {"first": np.array([1, 2])}, 1), "weights"),
        (lambda: top_curvatures(loss, [0.1, 0.2], 1), "weights"),
        (lambda: top_curvatures(lambda weights: weights["third"], WEIGHTS, 1), "loss"),
        (lambda: noise_spectrum(loss, WEIGHTS, np.ones((2, 19))), "noise"),
        (lambda: noise_spectrum(loss, WEIGHTS, np.full((2, 20), 1e30), products=9), "noise"),
        (lambda: noise_spectrum(loss, WEIGHTS, np.ones((2, 20)), products=21), "products"),
    ],
)
def test_bad_input_is_refused_by_name(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument

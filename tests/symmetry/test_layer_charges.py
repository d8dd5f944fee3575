from __future__ import annotations

import jax
import numpy as np
import pytest

from dynascope.compilation import jit
from dynascope.probes.alignment import layer_imbalance
from dynascope.symmetry import charges, find_symmetries
from dynascope.symmetry.layer_charges import layer_charges
from dynascope.theory.balanced import layer_balance
from dynascope.theory.function_space import conserved_matrices, conserved_matrix

LAYERS = [np.random.default_rng(0).normal(size=shape) for shape in ((3, 4), (4, 5), (5, 2))]
ROUNDING = 1e-13  # of sums of five products of order one


def test_all_names_of_the_matrix_between_layers_give_the_charges_that_structure_finds():
    found = find_symmetries(lambda weights, x: x @ weights[0] @ weights[1] @ weights[2], LAYERS, np.eye(3)).symmetries
    assert [each.kind for each in found] == ["matrix", "matrix"]
    matrices = conserved_matrices(LAYERS)
    probed = layer_imbalance(LAYERS)._asdict()
    for number, (symmetry, matrix) in enumerate(zip(found, matrices, strict=True)):
        two = LAYERS[number], LAYERS[number + 1]
        upper = np.triu_indices(symmetry.block)
        np.testing.assert_allclose(np.asarray(matrix)[upper], charges(LAYERS, [symmetry]), atol=ROUNDING)
        np.testing.assert_allclose(conserved_matrix(*two), matrix, atol=ROUNDING)
        np.testing.assert_allclose(np.linalg.norm(matrix), probed["imbalance"][number], rtol=ROUNDING)
        np.testing.assert_allclose(layer_balance(*two).value, probed["balance"][number], atol=ROUNDING)


def test_members_of_an_ensemble_have_factors_of_their_own():
    first, second = np.stack([LAYERS[0]] * 2), np.stack([LAYERS[1]] * 2)
    together = layer_charges(first, second, (np.array([1.0, 2.0]), np.array([1.0, 0.5])))
    alone = layer_charges(LAYERS[0], LAYERS[1], (2.0, 0.5))
    for several, single in zip(together, alone, strict=True):
        np.testing.assert_allclose(several[1], single, atol=ROUNDING)
    np.testing.assert_allclose(np.trace(alone.matrix), alone.total, atol=ROUNDING)


def test_tensors_of_pytorch_stay_tensors():
    torch = pytest.importorskip("torch")
    found = layer_charges(torch.tensor(LAYERS[0]), torch.tensor(LAYERS[1]))
    assert isinstance(found.matrix, torch.Tensor)
    np.testing.assert_allclose(found.matrix.numpy(), layer_charges(LAYERS[0], LAYERS[1]).matrix, atol=ROUNDING)


def test_an_imbalance_has_a_slope_under_jax():
    slope = jit(jax.grad(lambda first, second: layer_charges(first, second).total))(*LAYERS[:2])
    np.testing.assert_allclose(slope, -2 * LAYERS[0], rtol=1e-6)  # in 32 bits

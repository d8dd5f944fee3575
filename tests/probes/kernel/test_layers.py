from __future__ import annotations

import jax
import numpy as np
import pytest

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.probes.kernel import rate_weighted_kernel, structured_kernel
from dynascope.probes.kernel.conventions import CONTRACTIONS

SIZES = ((3, 4), (4, 2))


def layers(n=5, c=3, seed=0):
    draw = np.random.default_rng(seed)
    h = [draw.normal(size=(n, k)) for k, _ in SIZES]
    return h, [draw.normal(size=(n, c, m)) for _, m in SIZES]


@pytest.mark.parametrize("bias", [False, True])
def test_the_kernel_is_that_of_the_gradients_of_all_weights(bias):
    (h, d), (h_other, d_other) = layers(), layers(n=2, seed=1)
    gradients = [
        [np.einsum("ik,iam->iakm", one, two) for one, two in zip(*each, strict=True)]
        for each in ((h, d), (h_other, d_other))
    ]
    dense = sum(np.einsum("iakm,jbkm->iajb", *each) for each in zip(*gradients, strict=True))
    if bias:
        dense = dense + sum(np.einsum("iam,jbm->iajb", *each) for each in zip(d, d_other, strict=True))
    expected = {
        "full": dense,
        "diagonal": np.einsum("iaja->ija", dense),
        "trace": np.einsum("iaja->ij", dense) / 3,
    }
    for contraction, values in expected.items():
        found = structured_kernel(h, d, h_other, d_other, bias=bias, contraction=contraction)
        np.testing.assert_allclose(found.values, values, rtol=1e-12, atol=1e-12)  # rounding
        assert (found.contraction, found.dimensions) == (contraction, CONTRACTIONS[contraction])


@pytest.mark.parametrize("contraction", CONTRACTIONS)
def test_every_library_gives_the_same_numbers(contraction):
    torch = pytest.importorskip("torch", reason="PyTorch is an optional extra")
    h, d = layers()
    expected = structured_kernel(h, d, contraction=contraction, rates=[0.5, 2.0]).values

    def values(h, d):
        return structured_kernel(h, d, contraction=contraction, rates=[0.5, 2.0]).values

    with jax.enable_x64(True):
        for found in (jit(values)(h, d), values(*jax.tree.map(torch.from_numpy, (h, d)))):
            np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-10, atol=1e-10)


def test_rates_weight_the_kernels_of_the_layers():
    h, d = layers()
    parts = [structured_kernel(h[i : i + 1], d[i : i + 1]).values for i in range(2)]
    found = structured_kernel(h, d, rates=[0.3, 1.7])
    np.testing.assert_allclose(found.values, rate_weighted_kernel(parts, [0.3, 1.7]), rtol=1e-13)
    assert "rates" in found.parametrisation


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    "change",
    [
        {"contraction": "mean"},
        {"rates": [1.0]},
        {"rates": [1.0, -1.0]},
        {"signals": layers()[1][:1]},
        {"signals": layers(n=4)[1]},
        {"activations": [np.full_like(each, np.nan) for each in layers()[0]]},
        {"activations": []},
        {"other_activations": layers()[0]},
    ],
)
def test_bad_input_is_refused(change):
    h, d = layers()
    with pytest.raises(InputError):
        structured_kernel(**{"activations": h, "signals": d, **change})


def test_layer_kernels_of_unequal_shapes_are_refused():
    with pytest.raises(InputError, match="shapes"):
        rate_weighted_kernel([np.eye(2), np.eye(3)], [1.0, 1.0])

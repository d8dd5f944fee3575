from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from dynascope.symmetry import find_symmetries


def test_heads_mix_within_themselves():
    def apply(p, x):
        q, k = (jnp.reshape(x @ p[name], (len(x), 2, 3)) for name in ("Q", "K"))
        return jnp.tanh(jnp.einsum("thi,shi->hts", q, k))

    random = np.random.default_rng(0)
    params = {name: random.normal(size=(7, 6)) for name in ("Q", "K")}
    (found,) = find_symmetries(apply, params, random.normal(size=(4, 7))).symmetries
    assert (found.kind, found.block, found.units, found.group) == ("matrix", 3, 6, "GL(3) for each of 2")
    assert found.names[0].endswith("[0, 0]")
    assert found.names[-1].endswith("[5, 5]")
    # Between heads there is no charge: the Gram matrix of a head is that of its columns.
    theta = params["Q"], params["K"]
    heads = [each.reshape(7, 2, 3)[:, 0] for each in theta]
    gram = heads[0].T @ heads[0] - heads[1].T @ heads[1]
    last = next(part.factor for part in found.parts if part.path == "['Q']")
    rows, columns = np.triu_indices(3)
    np.testing.assert_allclose(found.form(params, params)[:6], last * gram[rows, columns], atol=1e-12)


def test_units_that_are_interleaved_mix_by_their_kind():
    def apply(p, x):
        z = x @ p["W"]
        return jnp.concatenate([z[:, ::2], jnp.abs(z[:, 1::2])], -1) @ p["A"]

    random = np.random.default_rng(0)
    params = {"W": random.normal(size=(5, 4)), "A": random.normal(size=(4, 2))}
    found = {each.kind: each for each in find_symmetries(apply, params, random.normal(size=(6, 5))).symmetries}
    assert {kind: each.size for kind, each in found.items()} == {"matrix": 3, "rescale": 2}
    labels = next(part.labels for part in found["matrix"].parts if part.path == "['W']")
    assert (labels >= 0).tolist() == [[True, False, True, False]]

"""An attention layer with query and value biases that are absent, constant, learned or resampled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dynascope.studies.symmetry.formulas import Formula

__all__ = ["PAIRS", "VARIANTS", "Variant", "attention", "charge_matrices", "layer"]

PAIRS = ("query and key", "value and output")
_SCALE = 0.5  # scale of the initial weights


class Variant(NamedTuple):
    """How a layer uses query and value biases.

    Attributes:
        draws: Which biases are not trained: "none", one "constant" bias, or one that is "resampled" for every batch.
        learned: Whether there are trained biases as well.
    """

    draws: str
    learned: bool = False


VARIANTS = {
    "no biases": Variant("none"),
    "constant": Variant("constant"),
    "constant and learned": Variant("constant", learned=True),
    "resampled": Variant("resampled"),
    "resampled and learned": Variant("resampled", learned=True),
}


def attention(p: Mapping[str, Any], x: Any, query_biases: Any, value_biases: Any) -> Any:
    """Outputs of one attention head at all tokens, for each draw of the biases.

    Outputs are divided by the square root of the number of draws, so that the loss is the mean over draws.
    """
    width, head_width = p["queries"].shape
    tokens = x.reshape(len(x), -1, width)

    def outputs(query_bias: Any, value_bias: Any) -> Any:
        queries = tokens @ p["queries"] + p.get("query bias", 0.0) + query_bias
        values = tokens @ p["values"] + p.get("value bias", 0.0) + value_bias
        scores = jnp.einsum("nsk,ntk->nst", queries, tokens @ p["keys"]) / np.sqrt(head_width)
        return jnp.reshape(jax.nn.softmax(scores) @ values @ p["outputs"], (len(x), -1))

    drawn = jax.vmap(outputs, out_axes=1)(query_biases, value_biases)
    return jnp.reshape(drawn, (len(x), -1)) / np.sqrt(len(query_biases))


def layer(variant: Variant, width: int, draws: int, seed: int) -> Formula:
    """A layer with Gaussian weights and the biases of a variant; weights do not depend on the variant."""
    draw = np.random.default_rng([seed, 1])
    weights = {name: _SCALE * draw.normal(size=(width, width)) for name in ("queries", "keys", "values", "outputs")}
    learned = {f"{name} bias": _SCALE * draw.normal(size=width) for name in ("query", "value")}
    # Means and standard deviations of the published protocol.
    query = 0.5 + np.linspace(0.05, 0.15, width) * draw.normal(size=(draws, width))
    value = 0.5 + 0.05 * draw.normal(size=(draws, width))
    kept = {"none": 1, "constant": 1, "resampled": draws}[variant.draws]
    present = float(variant.draws != "none")
    constants = {"query_biases": present * query[:kept], "value_biases": present * value[:kept]}
    return Formula(weights | (learned if variant.learned else {}), attention, constants)


def charge_matrices(network: Formula) -> Any:
    """The charges of both pairs, shape (2, width, width).

    Q Qᵀ − K Kᵀ and V Vᵀ − Oᵀ O, where Q, K, V and O map tokens to the head and back as column vectors. With learned
    biases, the sum b of learned and constant bias adds b bᵀ.
    """
    p = network.weights
    pairs = [
        p["queries"].T @ p["queries"] - p["keys"].T @ p["keys"],
        p["values"].T @ p["values"] - p["outputs"] @ p["outputs"].T,
    ]
    for place, name in enumerate(("query", "value")):
        if f"{name} bias" in p:
            bias = p[f"{name} bias"] + jax.lax.stop_gradient(network.constants[f"{name}_biases"][0])
            pairs[place] = pairs[place] + jnp.outer(bias, bias)
    return jnp.stack(pairs)

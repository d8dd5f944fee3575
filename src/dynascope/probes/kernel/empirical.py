"""The empirical neural tangent kernel of any function, by the algorithm that suits it; here in JAX."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dynascope.compilation import jit
from dynascope.compilation.frameworks import also_in_pytorch
from dynascope.probes.kernel.contraction import contract_signals
from dynascope.probes.kernel.conventions import CONTRACTIONS, Contraction, NeuralTangentKernel
from dynascope.probes.kernel.cost import Algorithm, choose, measure
from dynascope.probes.kernel.differentiation import (
    kernel_by_columns,
    kernel_from_jacobians,
    kernel_from_signals,
    projected_outputs,
)
from dynascope.probes.kernel.model import Arrays, Model, check_inputs, count_examples, layer_rates, split
from dynascope.validation import (
    require,
    require_finite_values,
    require_jax_arrays,
)
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt, Seed

__all__ = ["neural_tangent_kernel"]

_BLOCK = {
    "jacobian": functools.partial(kernel_from_jacobians, together=True),
    "layerwise": functools.partial(kernel_from_jacobians, together=False),
    "products": kernel_by_columns,
}
_MIRRORED = {"full": (2, 3, 0, 1), "diagonal": (1, 0, 2), "trace": (1, 0)}


@also_in_pytorch("dynascope.torch.kernel.empirical")
def neural_tangent_kernel(
    apply: Callable[[Any, Any], Any],
    params: Any,
    x: Any,
    other: Any = None,
    *,
    algorithm: Algorithm = "auto",
    contraction: Contraction = "full",
    batch_size: PositiveInt | None = None,
    rates: Any = None,
    draws: PositiveInt | None = None,
    seed: Seed = 0,
    memory: PositiveFloat = 4e9,
) -> NeuralTangentKernel:
    """The empirical neural tangent kernel Θ_{ia,jb} = Σ_θ η_θ ∂f_a(x_i)/∂θ ∂f_b(x'_j)/∂θ, that is J diag(η) J'ᵀ.

    Algorithms that give the kernel itself, to rounding (cost in operations and bytes: `estimate_cost`):

    - "jacobian": the whole Jacobians, contracted.
    - "layerwise": the same for one parameter array at a time, which holds fewer numbers.
    - "structured": for z = h W the activations h and the signals ∂f/∂z, contracted without weight gradients. Dense
      layers and convolutions are found in the traced function; other parameters are contracted layerwise.
    - "products": products of the kernel with unit vectors, one column at a time; holds one gradient.
    - "auto": the one with the fewest operations among those that fit into the memory.

    Estimates:

    - "pseudo": (1/c) Σ_ab Θ_{ia,jb}, the kernel of c^(−1/2) Σ_a f_a, shape (n, n'). Its relative error as an estimate
      of the trace falls as width^(−1/2): for trends, not for predictions at a small width.
    - "logits": the kernel of a random subset of outputs.
    - "sketch": K = (1/q) Σ_r (Jr)(J'r)ᵀ with Gaussian r of covariance diag(η), unbiased with variance
      (Θ_uu Θ_vv + Θ_uv²)/q for the entry between u = (i, a) and v = (j, b). Equal seeds give equal directions, so that
      distances between kernels at two times are not blurred by the draw.

    Compiled once for each `apply` (the same object, hashable) and each set of shapes. For float64 call it within
    `jax.enable_x64(True)`. Outputs of an example must not depend on its batch: dropout off, batch statistics frozen.

    In PyTorch the kernel is a tensor on the device and in the precision of the parameters, without a history of its
    own. "structured" reads the code as it runs: `torch.nn.Linear`, convolutions, embeddings and products `x @ W`, also
    a weight that is used several times. Examples are mapped over by `torch.func`. Code that it cannot map, such as code
    that looks at values of tensors, is differentiated example by example, which takes longer, and has no "products" and
    "sketch". "auto" is "structured", and "layerwise" or "products" where that does not fit into the memory.

    Args:
        apply: (params, inputs (n, ...)) → outputs (n, c), or (n,) for c = 1; for an equinox module
            `lambda network, x: jax.vmap(network)(x)`. A `torch.nn.Module` is used as it is; call its `eval()` first if
            it has dropout or batch normalisation.
        params: A tree; its arrays or tensors of floating-point numbers are the parameters θ, everything else is fixed.
            Of a `torch.nn.Module` None for all parameters that require a gradient, or {name: tensor} for these alone,
            at these values. A tensor in several places is one parameter.
        x: Inputs, n of them along the first axis of every array of the tree. Inputs go into a `torch.nn.Module` as
            `torch.func.functional_call` gives them: a tuple as its arguments, a dictionary of names of arguments as
            keywords, anything else as the only one.
        other: x', a second set of inputs; the same set if absent.
        algorithm: One of those above.
        contraction: "full" (n, c, n', c), "diagonal" (n, n', c) for a = b, or "trace" (n, n'), its mean over outputs.
        batch_size: Examples in one block of the kernel; the largest that fits into the memory by default. It changes
            the answer by rounding only.
        rates: η, from zero: a number, or a tree that is a prefix of `params` with one number, or an array of its
            shape, for each branch or parameter.
        draws: Outputs drawn for "logits" (one by default), directions for "sketch" (1000 by default; entries to 3–5 %).
        seed: Seed of the draw of "logits" and "sketch".
        memory: Bytes that may be held beyond parameters and inputs, by estimate.

    Returns:
        The kernel, with its conventions.

    Raises:
        InputError: A name that is not known, parameters that are not finite, inputs of no or of unequal length, rates
            that do not fit, outputs that are not finite or depend on the batch, or a kernel that does not fit into the
            memory. In PyTorch also layers in training mode that draw or look at the batch, and outputs that change when
            they are computed again.

    References:
        Neural Tangent Kernel, arXiv:1806.07572; Fast Finite Width Neural Tangent Kernel, arXiv:2206.08720; A Fast,
        Well-Founded Approximation to the Empirical Neural Tangent Kernel, arXiv:2206.12543.

    Example:
        >>> import jax.numpy as jnp
        >>> kernel = neural_tangent_kernel(lambda w, x: x @ w, jnp.ones((2, 3)), jnp.eye(2), contraction="trace")
        >>> kernel.values.tolist(), kernel.dimensions, kernel.algorithm
        ([[1.0, 0.0], [0.0, 1.0]], ('sample', 'other_sample'), 'structured')
    """
    require_jax_arrays(params=params, x=x, other=other)
    model, arrays = split(apply, params)
    eta = layer_rates(params, rates)
    for each in arrays[0]:
        require_finite_values("params", each)
    for name, inputs in (("x", x), ("other", other)):
        if inputs is not None:
            count_examples(name, inputs)
            check_inputs(model, arrays, inputs)
    x, other = jax.tree.map(lambda each: each if isinstance(each, jax.Array) else np.asarray(each), (x, other))
    size = measure(model, arrays, eta, x, other)
    outputs: tuple[int, ...] = ()
    if algorithm == "pseudo":
        model, contraction = dataclasses.replace(model, reduction="pseudo"), "trace"
    if algorithm == "logits":
        outputs = _drawn(size.outputs, draws or 1, seed)
        model = dataclasses.replace(model, reduction=outputs)
    name, cost = choose(size, contraction, algorithm, batch_size, draws, memory)

    with jax.default_matmul_precision("highest"):
        if algorithm == "sketch":
            values = _sketched(model, arrays, eta, x, other, contraction, cost.batch_size, draws or 1000, seed)
        else:
            block = _BLOCK.get(name) or functools.partial(kernel_from_signals, uses=size.uses)

            def between(one: Any, two: Any) -> jax.Array:
                return block(model, arrays=arrays, rates=eta, x=one, other=two, contraction=contraction)

            values = _in_blocks(between, x, other, cost.batch_size, contraction)
    if algorithm == "pseudo":
        normalisation = "sum over pairs of outputs, over their number c"
    else:
        normalisation = "mean over outputs" if contraction == "trace" else "none"
    return NeuralTangentKernel(
        values=values,
        dimensions=CONTRACTIONS[contraction],
        contraction="pseudo" if algorithm == "pseudo" else contraction,
        algorithm=name,
        normalisation=normalisation,
        parametrisation="the arrays of params as apply takes them" + ("" if rates is None else ", with rates"),
        outputs=outputs,
    )


def _drawn(outputs: int, draws: int, seed: int) -> tuple[int, ...]:
    require(
        draws <= outputs,
        f"draws is {draws}, of {outputs} outputs",
        argument="draws",
        value=draws,
        remedy=f"choose an integer from 1 to {outputs}",
    )
    chosen = np.random.default_rng(seed).choice(outputs, size=draws, replace=False)
    return tuple(sorted(int(each) for each in chosen))


def _in_blocks(
    between: Callable[[Any, Any], jax.Array], x: Any, other: Any, block: int, contraction: Contraction
) -> jax.Array:
    """The kernel put together from those between blocks; the lower half of a symmetric one is mirrored."""
    rows = _blocks(x, block)
    columns = rows if other is None else _blocks(other, block)
    found: dict[tuple[int, int], jax.Array] = {}
    for i, one in enumerate(rows):
        for j, two in enumerate(columns):
            if other is not None or j >= i:
                found[i, j] = between(one, None if other is None and i == j else two)
    n, n_other = count_examples("x", x), count_examples("other", x if other is None else other)
    if len(rows) == len(columns) == 1:
        return found[0, 0]
    return _put_together(found, n, n_other, contraction)


@functools.partial(jit, static_argnums=(1, 2, 3))
def _put_together(found: dict[tuple[int, int], jax.Array], n: int, n_other: int, contraction: Contraction) -> jax.Array:
    """One array of blocks, without what fills them up; those below the diagonal may be mirrored."""
    last, last_other = max(found)
    across = 2 if contraction == "full" else 1

    def block(i: int, j: int) -> jax.Array:
        return found[i, j] if (i, j) in found else jnp.transpose(found[j, i], _MIRRORED[contraction])

    rows = [jnp.concatenate([block(i, j) for j in range(last_other + 1)], axis=across) for i in range(last + 1)]
    return jax.lax.slice_in_dim(jnp.concatenate(rows)[:n], 0, n_other, axis=across)


def _blocks(inputs: Any, block: int) -> list[Any]:
    """Blocks of equal length, so that one program serves all; the last is filled up with its last example."""
    n = count_examples("x", inputs)
    if block >= n:
        return [inputs]
    places = [np.minimum(np.arange(start, start + block), n - 1) for start in range(0, n, block)]
    return [jax.tree.map(lambda each, place=place: each[place], inputs) for place in places]


def _sketched(
    model: Model,
    arrays: Arrays,
    rates: Any,
    x: Any,
    other: Any,
    contraction: Contraction,
    block: int,
    draws: int,
    seed: int,
) -> jax.Array:
    def projected(inputs: Any) -> jax.Array:
        parts = [projected_outputs(model, arrays, rates, each, seed, draws=draws) for each in _blocks(inputs, block)]
        return jnp.concatenate(parts)[: count_examples("x", inputs)]

    one = projected(x)
    return contract_signals(one, one if other is None else projected(other), contraction) / draws

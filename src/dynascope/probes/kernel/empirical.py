"""The empirical neural tangent kernel of any function, by the algorithm that suits it, and what each of them costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import jax
import numpy as np
from annotated_types import Interval

from dynascope.probes.kernel.conventions import CONTRACTIONS, Contraction, NeuralTangentKernel
from dynascope.probes.kernel.cost import ESTIMATES, EXACT, Algorithm, Cost, choose, cost_of, largest_block
from dynascope.probes.kernel.function import differentiable
from dynascope.validation import require_kind
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt, Seed

__all__ = ["estimate_cost", "neural_tangent_kernel"]


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
    function, size = differentiable(apply, params, x, other, rates)
    outputs: tuple[int, ...] = ()
    if algorithm == "pseudo":
        function, contraction = function.reduced("pseudo"), "trace"
    if algorithm == "logits":
        require_kind(Annotated[int, Interval(ge=1, le=size.outputs)], draws=draws or 1)
        drawn = np.random.default_rng(seed).choice(size.outputs, size=draws or 1, replace=False)
        outputs = tuple(sorted(drawn.tolist()))
        function = function.reduced(outputs)
    choices = function.choices if algorithm == "auto" else ((algorithm,),)
    name, cost = choose(size, contraction, choices, batch_size, draws, memory)
    with jax.default_matmul_precision("highest"):  # JAX alone takes a lower one on some devices
        if algorithm == "sketch":
            values = function.sketch(x, other, contraction, cost.batch_size, draws=draws or 1000, seed=seed)
        else:
            values = function.kernel(name, x, other, contraction, cost.batch_size)
    if algorithm == "pseudo":
        normalisation = "sum over pairs of outputs, over their number c"
    else:
        normalisation = "mean over outputs" if contraction == "trace" else "none"
    rated = "" if rates is None else ", with rates"
    return NeuralTangentKernel(
        values=values,
        dimensions=CONTRACTIONS[contraction],
        contraction="pseudo" if algorithm == "pseudo" else contraction,
        algorithm=name,
        normalisation=normalisation,
        parametrisation=f"the {function.leaves} of params as apply takes them{rated}",
        outputs=outputs,
    )


def estimate_cost(
    apply: Callable[[Any, Any], Any],
    params: Any,
    x: Any,
    other: Any = None,
    *,
    contraction: Contraction = "full",
    batch_size: PositiveInt | None = None,
    rates: Any = None,
    draws: PositiveInt | None = None,
) -> dict[str, Cost]:
    """Operations and bytes of each algorithm of `neural_tangent_kernel`, found by tracing, without running any.

    With n and n' examples, c outputs, P parameters and F operations of one forward pass on one example, the kernel is

        jacobian, layerwise   2(n+n')cF + 2nn'c²P       holding ncP numbers, or nc times the largest layer
        structured            (n+n')cF + 2nn' Σ_l (k_l + c² m_l) for dense layers of k_l inputs and m_l outputs
        products              2nn'cF, holding one gradient
        pseudo, logits        as structured, with one output or q of them
        sketch                2(n+n')qF + 2nn'c²q

    with c for c² if contracted over outputs. Blocks repeat the passes, and those below the diagonal
    are mirrored. F is what the compiler counts, where the body of a loop of unknown length counts once; in PyTorch what
    `torch.utils.flop_counter` counts, products and convolutions, in one forward pass of one example.

    Args:
        apply: As `neural_tangent_kernel` takes it, also of PyTorch, and so the others.
        params: Parameters.
        x: Inputs.
        other: A second set of inputs.
        contraction: "full", "diagonal" or "trace".
        batch_size: Examples in one block; all by default.
        rates: Learning rates.
        draws: q, as `neural_tangent_kernel` takes it.

    Returns:
        Algorithm → its cost.

    Raises:
        InputError: As `neural_tangent_kernel`.

    References:
        Fast Finite Width Neural Tangent Kernel, arXiv:2206.08720, Table 1.

    Example:
        >>> import jax.numpy as jnp
        >>> costs = estimate_cost(lambda w, x: x @ w, jnp.ones((512, 10)), jnp.ones((64, 512)))
        >>> costs["jacobian"].flops / costs["structured"].flops > 100
        True
    """
    _, size = differentiable(apply, params, x, other, rates, runs=False)
    block = largest_block(size, batch_size)
    return {name: cost_of(name, size, contraction, block, draws) for name in EXACT + ESTIMATES}

"""The empirical neural tangent kernel of any function, by several algorithms, with cost estimates."""

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
    """Compute the empirical neural tangent kernel J diag(η) J'ᵀ of a function.

        Θ_{ia,jb} = Σ_θ η_θ ∂f_a(x_i)/∂θ ∂f_b(x'_j)/∂θ

    Exact algorithms (for their operations and memory, see `estimate_cost`):

    - "jacobian": contracts the full Jacobians.
    - "layerwise": contracts the Jacobian of one parameter array at a time, which needs less memory.
    - "structured": for z = h W, contracts the activations h and the signals ∂f/∂z without forming weight gradients.
      Dense layers and convolutions are found in the traced function; other parameters are contracted layerwise.
    - "products": computes the kernel column by column, as products with unit vectors; stores only one gradient.
    - "auto": the algorithm with the fewest operations that fits into memory.

    Estimates:

    - "pseudo": (1/c) Σ_ab Θ_{ia,jb}, the kernel of c^(−1/2) Σ_a f_a, shape (n, n'). Its relative error as an estimate
      of the trace decreases as width^(−1/2), so use it for trends, not for predictions at small width.
    - "logits": the kernel of a random subset of outputs.
    - "sketch": K = (1/q) Σ_r (Jr)(J'r)ᵀ with Gaussian r of covariance diag(η). The estimate is unbiased; the variance
      of the entry between u = (i, a) and v = (j, b) is (Θ_uu Θ_vv + Θ_uv²)/q. The same seed always draws the same
      directions, so the random draw does not blur distances between kernels at two times.

    The program is compiled once for each `apply` (the same hashable object) and each set of shapes. For float64, call
    this function within `jax.enable_x64(True)`. The outputs of an example must not depend on the rest of its batch:
    switch dropout off and freeze batch statistics.

    In PyTorch, the kernel is a detached tensor on the device and in the precision of the parameters. "structured"
    analyses the code as it runs: `torch.nn.Linear`, convolutions, embeddings and products `x @ W`, including weights
    that are used several times. `torch.func` maps over the examples. Code that `torch.func` cannot map, e.g. because it
    reads tensor values, is differentiated example by example, which is slower and excludes "products" and "sketch".
    "auto" selects "structured", or "layerwise" or "products" if that does not fit into memory.

    Args:
        apply: (params, inputs (n, ...)) → outputs (n, c), or (n,) for c = 1. For an equinox module, `lambda network, x:
            jax.vmap(network)(x)`. A `torch.nn.Module` is used in its current mode; call its `eval()` first if it has
            dropout or batch normalisation.
        params: A tree whose floating-point arrays or tensors are the parameters θ; all other leaves are constant. For a
            `torch.nn.Module`, None for all parameters that require a gradient, or {name: tensor} to select parameters
            and set their values. A shared tensor is one parameter.
        x: n inputs, along the first axis of every array of the tree. The inputs are passed to a `torch.nn.Module` as in
            `torch.func.functional_call`: a tuple as positional arguments, a dictionary as keyword arguments, anything
            else as the only argument.
        other: x', a second set of inputs; by default the same as `x`.
        algorithm: One of the algorithms above.
        contraction: "full", shape (n, c, n', c); "diagonal", shape (n, n', c), for a = b; or "trace", shape (n, n'),
            the mean of the diagonal over outputs.
        batch_size: Number of examples in one block of the kernel; by default the largest that fits into memory. The
            block size changes the result only by rounding errors.
        rates: η ≥ 0: a number, or a tree that is a prefix of `params`. Its leaves are numbers for each branch or
            parameter, or arrays of the parameters' shapes.
        draws: Number of outputs for "logits" (default 1), or of directions for "sketch" (default 1000, for errors of
            3–5 % relative to the diagonal).
        seed: Seed of the random draw for "logits" and "sketch".
        memory: Maximum estimated memory in bytes, in addition to parameters and inputs.

    Returns:
        The kernel, with its conventions.

    Raises:
        InputError: If an option is unknown, parameters or outputs are not finite, inputs are empty or have different
            lengths, rates do not match the parameters, outputs depend on the batch, or the kernel does not fit into
            memory. In PyTorch, also if layers in training mode draw random numbers or use batch statistics, or if
            repeated evaluation changes the outputs.

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
    with jax.default_matmul_precision("highest"):  # JAX's default precision is lower on some devices
        if algorithm == "sketch":
            values = function.sketch(x, other, contraction, cost.batch_size, draws=draws or 1000, seed=seed)
        else:
            values = function.kernel(name, x, other, contraction, cost.batch_size)
    if algorithm == "pseudo":
        normalisation = "sum over pairs of outputs, divided by c"
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
    """Estimate operations and memory of each algorithm of `neural_tangent_kernel` by tracing, without running it.

    For n and n' examples, c outputs, P parameters, and F operations in one forward pass on one example, the costs are

        jacobian, layerwise   2(n+n')cF + 2nn'c²P, storing ncP numbers, or nc times the largest layer
        structured            (n+n')cF + 2nn' Σ_l (k_l + c² m_l) for dense layers of k_l inputs and m_l outputs
        products              2nn'cF, storing one gradient
        pseudo, logits        as structured, with one output or q of them
        sketch                2(n+n')qF + 2nn'c²q

    with c instead of c² if outputs are contracted. Several blocks repeat the forward passes; blocks below the diagonal
    are mirrored. In JAX, F is the compiler's count, in which the body of a loop of unknown length counts once. In
    PyTorch, F is the count of `torch.utils.flop_counter`, which includes only products and convolutions.

    Args:
        apply: As for `neural_tangent_kernel`, in JAX or PyTorch; likewise for the other arguments.
        params: Parameters.
        x: Inputs.
        other: A second set of inputs.
        contraction: "full", "diagonal" or "trace".
        batch_size: Number of examples in one block; all by default.
        rates: Learning rates.
        draws: q, as for `neural_tangent_kernel`.

    Returns:
        The cost of each algorithm, by name.

    Raises:
        InputError: As for `neural_tangent_kernel`.

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

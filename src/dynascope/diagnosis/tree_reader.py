"""Reads the parameters, gradients, features and kernel of a JAX function during training."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from dynascope.compilation import filter_jit
from dynascope.diagnosis.forward_function import ForwardFunction, outputs_of
from dynascope.diagnosis.micro_batches import MicroBatchGradients, dot
from dynascope.diagnosis.parameter_tree import ParameterTree
from dynascope.diagnosis.probe import Sizes
from dynascope.diagnosis.reference_batch import count_examples, flipped_rows, split_reference, target_rows
from dynascope.diagnosis.rows import as_rows
from dynascope.diagnosis.snapshot import ForwardPass, MicroBatches
from dynascope.probes.diffusion.lanczos import tridiagonal
from dynascope.probes.kernel.empirical import neural_tangent_kernel
from dynascope.probes.kernel.examples import count_rows, rows_of
from dynascope.validation import calling, require, require_jax_arrays

__all__ = ["TreeReader", "WeightLayout"]

WeightLayout = Literal["inputs_outputs", "outputs_inputs"]
_CURVATURES = 3
_PRODUCTS = 40  # of the Lanczos method, in addition to the number of curvatures


class TreeReader:
    """Reads a function of parameters and inputs; implements `diagnosis.model_reader.ModelReader`.

    Each measurement is a separate function, which is compiled once.

    Args:
        apply: (params, inputs) → outputs (n, c), or (outputs, a tree of features).
        params: The initial parameters.
        reference: The reference batch; see `split_reference`.
        activations: See `ForwardFunction`, as for `features` and `layers`.
        features: See `activations`.
        layers: See `activations`.
        readout: The name of the weight matrix of the last linear layer, whose input is the last of the features; None
            if unknown.
        readout_bias: The name of the bias of the last linear layer; None if it has none.
        layout: The layout of weights.
        selected: Which parameters are recorded, by name.
        kernel_examples: Number of examples in the kernel.
        memory: Bytes that the kernel may use.
        criterion: The loss, a function of outputs and targets that averages over examples; None if unknown.
        batch_size: Number of examples in the batches whose curvature is measured.
        flipped: The examples whose labels are known to be wrong; see `flipped_rows`.

    Attributes:
        params: The current parameters.
        current_gradients: The gradients of the parameters, a tree of the same structure; None if unknown.
        inputs: The inputs of the reference batch.
        targets: The targets of the reference batch; None if there are none.
        flipped: Whether the label of each row of the targets is known to be wrong; None if unknown.
        knows_loss: Whether the loss is known.
        units_last: Whether weights have their output units along the last axis.
        compiles: True.
        needs_gradients: False, because gradients are optional.
    """

    compiles = True
    needs_gradients = False

    def __init__(
        self,
        apply: Callable[[Any, Any], Any],
        params: Any,
        reference: Any,
        *,
        activations: Callable[[Any, Any], Mapping[str, Any]] | None,
        features: Callable[[Any, Any], Mapping[str, Any]] | None,
        layers: Collection[str] | None,
        readout: str | None,
        readout_bias: str | None,
        layout: WeightLayout,
        selected: Callable[[str], bool],
        kernel_examples: int,
        memory: float,
        criterion: Callable[[Any, Any], Any] | None,
        batch_size: int,
        flipped: Any = None,
    ):
        self._tree = ParameterTree(params, selected)
        self.params, self.current_gradients = params, None
        require_jax_arrays(reference=reference)
        inputs, labels = split_reference(reference)
        self.inputs = jax.tree.map(lambda each: jnp.array(each), inputs)
        self._labels = None if labels is None else jnp.array(labels)
        self._examples = count_examples(self.inputs, kind="array")
        self.targets = None if self._labels is None else target_rows(self._labels)
        self.flipped = flipped_rows(flipped, self.targets, self._examples)
        self._batch_size = min(batch_size, self._examples // 2)
        self._kernel_inputs = rows_of(self.inputs, slice(0, kernel_examples))
        self._memory, self._criterion = memory, criterion
        self.knows_loss = criterion is not None and labels is not None
        self._readout, self._readout_bias = readout, readout_bias
        self.units_last = layout == "inputs_outputs"
        self.micro_batches = MicroBatchGradients(self._tree.gradients)

        forward = ForwardFunction(
            apply,
            activations=activations,
            features=features,
            layers=layers,
            channels_second=not self.units_last,
        )

        def outputs(weights: Any, rest: Any, x: Any) -> jax.Array:
            return outputs_of(apply(self._tree.join(weights, rest), x))

        def loss(weights: Any, rest: Any, x: Any, y: Any) -> jax.Array:
            assert criterion is not None
            return criterion(outputs(weights, rest, x), y)

        def batch(weights: Any, rest: Any, x: Any, y: Any) -> tuple[Any, Any]:
            gradient = jax.grad(loss)
            at = gradient(weights, rest, x, y)
            return at, jax.jvp(lambda each: gradient(each, rest, x, y), (weights,), (at,))[1]

        def loss_of_outputs(raw_outputs: Any, y: Any) -> jax.Array:
            assert criterion is not None
            return criterion(raw_outputs, y)

        self._outputs = outputs
        self._loss_of_outputs = filter_jit(loss_of_outputs)
        self._forward = filter_jit(lambda weights, rest, x: forward(self._tree.join(weights, rest), x))
        self._batch = filter_jit(batch)
        self._curvatures = filter_jit(functools.partial(_largest_curvatures, loss))
        # The kernel is compiled once for each function, so it must be the same object at each measurement.
        self._of_pair = lambda pair, x: _one_row_each(outputs(pair[0], pair[1], x), x)
        self._check(forward)

    def weights(self) -> dict[str, Any]:
        """Return the recorded parameters by name."""
        return self._tree.split(self.params)[0]

    def copied_weights(self) -> dict[str, Any]:
        """Return copies of the recorded parameters, because compiled steps may reuse their memory."""
        return {name: each.copy() for name, each in self.weights().items()}

    def restored(self, weights: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Return saved parameters on the devices of the current ones."""
        now = self.weights()
        return {
            name: jax.device_put(each.astype(now[name].dtype), getattr(now[name], "sharding", None))
            for name, each in weights.items()
        }

    def gradients(self) -> dict[str, Any] | None:
        """Return the gradients by name, zero for parameters without one; None if they are unknown."""
        return None if self.current_gradients is None else self._tree.gradients(self.current_gradients)

    def forward(self) -> ForwardPass:
        """Run the function on the reference batch."""
        raw, preactivations, features = self._forward(*self._tree.split(self.params), self.inputs)
        outputs = as_rows(raw)
        if self._readout is None:
            return ForwardPass(outputs, preactivations, features, raw_outputs=raw)
        weight = self._tree.leaf(self.params, self._readout, "readout")
        bias = None if self._readout_bias is None else self._tree.leaf(self.params, self._readout_bias, "readout_bias")
        return ForwardPass(
            outputs=outputs,
            preactivations=preactivations,
            features=features,
            readout=next(reversed(features)),
            readout_weight=weight.T if self.units_last else weight,
            readout_bias=bias,
            raw_outputs=raw,
        )

    def loss(self, outputs: Any) -> jax.Array:
        """Return the loss of the reference batch, given the outputs of `apply`."""
        return self._loss_of_outputs(outputs, self._labels)

    def kernel(self) -> jax.Array:
        """Return the pseudo-kernel of the first examples: the neural tangent kernel of the scaled sum of outputs."""
        return self._kernel(algorithm="pseudo")

    def exact_kernel(self) -> jax.Array:
        """Return the neural tangent kernel of the first examples, averaged over outputs."""
        return self._kernel(contraction="trace")

    def _kernel(self, **options: Any) -> jax.Array:
        pair = self._tree.split(self.params)
        others = any(map(eqx.is_inexact_array, jax.tree.leaves(pair[1])))
        rates = (1.0, 0.0) if others else None
        return neural_tangent_kernel(
            self._of_pair, pair, self._kernel_inputs, rates=rates, memory=self._memory, **options
        ).values

    def curvatures(self) -> np.ndarray:
        """Return the largest curvatures of the loss on the reference batch."""
        weights, rest = self._tree.split(self.params)
        size = sum(each.size for each in weights.values())
        start = np.random.default_rng(0).normal(size=size)
        return np.asarray(self._curvatures(weights, rest, self.inputs, self._labels, start))

    def batches(self) -> tuple[MicroBatches, list[float]]:
        """Split the reference batch, and return the gradients of the batch losses with their curvature gᵀHg."""
        pair = self._tree.split(self.params)
        gradients = MicroBatchGradients(lambda each: each)
        along: list[float] = []
        for start in range(0, self._examples - self._batch_size + 1, self._batch_size):
            rows = slice(start, start + self._batch_size)
            gradient, product = self._batch(*pair, rows_of(self.inputs, rows), rows_of(self._labels, rows))
            gradients.add(gradient, self._batch_size)
            along.append(dot(gradient, product))
        return gradients.result(), along

    def sizes(self, forward: ForwardPass) -> Sizes:
        """Return the sizes of the parameters and of the reference batch."""
        weights, rest = self._tree.split(self.params)
        arrays, static = eqx.partition(rest, eqx.is_array)
        program = jax.jit(lambda weights, arrays, x: self._outputs(weights, eqx.combine(arrays, static), x))
        counted = program.lower(weights, arrays, self.inputs).cost_analysis() or {}
        parameters = sum(each.size for each in weights.values())
        return Sizes(
            parameters=parameters,
            examples=self._examples,
            kernel_examples=count_rows(self._kernel_inputs),
            forward=counted.get("flops", 0.0) / self._examples or 2.0 * parameters,
            activations=sum(each.size for each in forward.preactivations.values()) // self._examples,
            features=sum(each.shape[1] for each in forward.features.values()),
            itemsize=max(each.dtype.itemsize for each in weights.values()),
            memory=self._memory,
        )

    @contextlib.contextmanager
    def unchanged(self) -> Iterator[None]:
        """Multiply matrices in the full precision of their entries, which is not the default on some devices."""
        with jax.default_matmul_precision("highest"):
            yield

    def _check(self, forward: ForwardFunction) -> None:
        """Raise `InputError` if a function fails on the reference batch, or the readout does not fit."""
        with calling(
            "apply", getattr(self._outputs, "__name__", "apply"), "give a function (params, inputs) → outputs"
        ):
            weights, rest = self._tree.split(self.params)
            arrays, static = eqx.partition((weights, rest), eqx.is_array)
            raw, _, features = jax.eval_shape(
                lambda arrays, x: forward(self._tree.join(*eqx.combine(arrays, static)), x), arrays, self.inputs
            )
        if self._readout is None:
            return
        require(
            features,
            "readout is given, but there are no features",
            argument="readout",
            value=self._readout,
            remedy="pass features, or return (outputs, {name: features}) from apply",
        )
        name = next(reversed(features))
        outputs = jax.eval_shape(as_rows, raw)
        expected = features[name].shape[1], outputs.shape[1]
        expected = expected if self.units_last else expected[::-1]
        shape = self._tree.leaf(self.params, self._readout, "readout").shape
        require(
            shape == expected,
            f"the readout {self._readout!r} has shape {shape}, but the features {name!r} and the "
            f"outputs require shape {expected}",
            argument="readout",
            value=shape,
            remedy='check layout ("inputs_outputs" for x @ W, "outputs_inputs" for W @ x), and end layers with the '
            "features that the last layer receives",
        )
        if self._readout_bias is not None:
            self._tree.leaf(self.params, self._readout_bias, "readout_bias")


def _one_row_each(outputs: jax.Array, inputs: Any) -> jax.Array:
    return jnp.reshape(outputs, (count_rows(inputs), -1))


def _largest_curvatures(loss: Callable[..., Any], weights: Any, rest: Any, x: Any, y: Any, start: Any) -> jax.Array:
    """Return the largest eigenvalues of the Hessian of the loss by the Lanczos method."""
    flat, unravel = ravel_pytree(weights)

    def product(vector: jax.Array) -> jax.Array:
        gradient = jax.grad(lambda each: loss(unravel(each), rest, x, y))
        return jax.jvp(gradient, (flat,), (vector,))[1]

    _, matrix = tridiagonal(product, start.astype(flat.dtype), min(flat.size, _CURVATURES + _PRODUCTS))
    return jnp.linalg.eigvalsh(matrix)[::-1][:_CURVATURES]

"""Reads the weights, gradients, features and kernel of a PyTorch module during training."""
# pyright: reportMissingImports=false

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import jax
import numpy as np
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from dynascope.diagnosis.probe import Sizes
from dynascope.diagnosis.reference_batch import count_examples, flipped_rows, target_rows
from dynascope.diagnosis.rows import as_rows, feature_rows
from dynascope.diagnosis.snapshot import ForwardPass, MicroBatches
from dynascope.errors import InputError
from dynascope.probes.kernel.empirical import neural_tangent_kernel
from dynascope.probes.kernel.examples import count_rows, rows_of
from dynascope.torch.curvature import module_curvatures, with_reduction
from dynascope.torch.devices import buffer_places, parameter_places
from dynascope.torch.modules import Applied, call_arguments, require_shapes, unwrapped
from dynascope.torch.recorder.forward_capture import ForwardCapture
from dynascope.torch.recorder.model_outputs import outputs_of
from dynascope.torch.recorder.private_copy import originals_never_run, private_copy
from dynascope.torch.recorder.reference_tensors import next_token_labels, reference_tensors
from dynascope.torch.recorder.whole_weights import require_whole_weights
from dynascope.validation import require, shown_error

__all__ = ["ModuleReader"]

_CURVATURES = 3


class ModuleReader:
    """Reads a PyTorch module; implements `diagnosis.model_reader.ModelReader`.

    Each measurement runs a new private copy of the module that shares its weights, in evaluation mode, without autocast
    and outside compiled graphs.

    Args:
        model: The module, which may be compiled or wrapped for data-parallel training.
        reference: The reference batch; see `diagnosis.reference_batch.split_reference`.
        layers: The names of the submodules whose outputs are features, besides the input of the last linear layer.
        selected: Which trainable parameters are recorded, by name.
        output: Returns the outputs from the result of the module; None to find the outputs automatically.
        kernel_examples: Number of examples in the kernel.
        memory: Bytes that the kernel may use.
        criterion: The loss, a function of outputs and targets that averages over examples; None if unknown.
        batch_size: Number of examples in the batches whose curvature is measured.
        flipped: The examples whose labels are known to be wrong; see `diagnosis.reference_batch.flipped_rows`.

    Attributes:
        inputs: The inputs of the reference batch.
        targets: The targets of the reference batch; None if there are none.
        flipped: Whether the label of each row of the targets is known to be wrong; None if unknown.
        knows_loss: Whether the loss is known.
        units_last: False, because PyTorch weights have their output units along the first axis.
        compiles: False.
        needs_gradients: True, because loops that clear gradients too early are common.
    """

    units_last = False
    compiles = False
    needs_gradients = True

    def __init__(
        self,
        model: nn.Module,
        reference: Any,
        *,
        layers: Collection[str],
        selected: Callable[[str], bool],
        output: Callable[[Any], torch.Tensor] | None,
        kernel_examples: int,
        memory: float,
        criterion: Callable[[Any, Any], torch.Tensor] | None = None,
        batch_size: int = 32,
        flipped: Any = None,
    ):
        self._model = unwrapped(model)
        require_shapes("model", self._model)
        require_whole_weights(self._model)
        trainable = [name for name, each in self._model.named_parameters() if each.requires_grad]
        require(
            trainable,
            "model has no trainable parameters",
            argument="model",
            value=type(self._model).__name__,
            remedy="give a module with parameters that require a gradient",
        )
        self._names = [name for name in trainable if selected(name)]
        require(
            self._names,
            "parameters selects no trainable parameter of the model",
            argument="parameters",
            value=trainable[0],
            remedy=f"give a pattern of names such as {trainable[0]}",
        )
        known = dict(self._model.named_modules())
        unknown = sorted({*layers} - {*known})
        require(
            not unknown,
            f"the model has no layer named {' or '.join(map(repr, unknown))}",
            argument="layers",
            value=unknown,
            remedy="choose names from model.named_modules()",
        )
        self._layers, self._output, self._memory = layers, output, memory
        self._copy: nn.Module | None = None
        inputs, self._labels = reference_tensors(reference, self.device)
        self.targets = None if self._labels is None else target_rows(next_token_labels(inputs, self._labels))
        self.inputs, self._examples = inputs, count_examples(inputs, kind="tensor")
        self.flipped = flipped_rows(flipped, self.targets, self._examples)
        self._batch_size = min(batch_size, self._examples // 2)
        self.knows_loss = criterion is not None and self._labels is not None
        self._criterion: Any = criterion
        if criterion is not None and not isinstance(criterion, nn.Module):
            self._criterion = with_reduction(criterion, "mean")
        self._kernel_inputs = rows_of(inputs, slice(0, kernel_examples))
        with self.unchanged():
            self._operations = self._count_operations()

    @property
    def device(self) -> torch.device:
        """The device of the first parameter."""
        return next(self._model.parameters()).device

    def weights(self) -> dict[str, torch.Tensor]:
        """Return the recorded weights by name."""
        return {name: each.detach() for name, each in self._parameters().items()}

    def copied_weights(self) -> dict[str, torch.Tensor]:
        """Return copies of the recorded weights."""
        return {name: each.clone() for name, each in self.weights().items()}

    def restored(self, weights: Mapping[str, np.ndarray]) -> dict[str, torch.Tensor]:
        """Return saved weights as tensors on the device of the model."""
        now = self.weights()
        return {name: torch.as_tensor(each).to(now[name]) for name, each in weights.items()}

    def gradients(self) -> dict[str, torch.Tensor] | None:
        """Return the gradients by name, zero for parameters without one; None if no parameter has one."""
        found = self._parameters()
        grads = {name: each.grad for name, each in found.items()}
        if all(each is None for each in grads.values()):
            return None
        return {
            name: torch.zeros_like(found[name]) if each is None else each.detach().to_dense()
            for name, each in grads.items()
        }

    def forward(self) -> ForwardPass:
        """Run the private copy on the reference batch."""
        with torch.no_grad(), ForwardCapture(self._private(), self._layers) as captured:
            result = self._call(self._state(), self.inputs)
        outputs = as_rows(result)
        features = {name: feature_rows(each, len(outputs)) for name, each in captured.features.items()}
        readout, weight, bias = "", None, None
        if captured.readout:
            readout = f"input of {captured.readout}"
            features[readout] = feature_rows(captured.readout_input.detach(), len(outputs))
            layer = self._model.get_submodule(captured.readout)
            weight, bias = layer.weight.detach(), None if layer.bias is None else layer.bias.detach()
        return ForwardPass(
            outputs=outputs,
            preactivations={
                name: as_rows(z, channels_second=channels) for name, (z, channels) in captured.preactivations.items()
            },
            features=features,
            readout=readout,
            readout_weight=weight,
            readout_bias=bias,
            unread=tuple(name for name in self._layers if name not in captured.features),
            raw_outputs=result,
        )

    def loss(self, outputs: torch.Tensor) -> torch.Tensor:
        """Return the loss of the reference batch, given the outputs of the module."""
        with torch.no_grad():
            return self._criterion(outputs, self._labels)

    def kernel(self) -> torch.Tensor:
        """Return the pseudo-kernel of the first examples: the neural tangent kernel of the scaled sum of outputs."""
        return self._kernel(algorithm="pseudo")

    def exact_kernel(self) -> torch.Tensor:
        """Return the neural tangent kernel of the first examples, averaged over outputs."""
        return self._kernel(contraction="trace")

    def _kernel(self, **options: Any) -> torch.Tensor:
        state = self._state()
        return neural_tangent_kernel(
            lambda weights, inputs: self._call(state | self._places(weights), inputs).reshape(len(_first(inputs)), -1),
            self.weights(),
            self._kernel_inputs,
            memory=self._memory,
            **options,
        ).values

    def curvatures(
        self, count: int = _CURVATURES, *, scales: Callable[[torch.Tensor], torch.Tensor] | None = None
    ) -> np.ndarray:
        """Return the largest curvatures of the loss on the reference batch; see `module_curvatures` for the scales."""
        network = Applied(self._private(), lambda _, inputs: self._call({}, inputs))
        batches = [(self.inputs, self._labels)]
        return module_curvatures(network, self._criterion, batches, count, scales=scales, argument="model").curvature

    def batches(self) -> tuple[MicroBatches, list[float]]:
        """Split the reference batch, and return the gradients of the batch losses with their curvature gᵀHg."""
        state = self._state()
        squares: list[float] = []
        along: list[float] = []
        weights = {name: each.requires_grad_() for name, each in self.copied_weights().items()}
        total = [torch.zeros_like(each) for each in weights.values()]
        starts = range(0, self._examples - self._batch_size + 1, self._batch_size)
        for rows in (slice(start, start + self._batch_size) for start in starts):
            outputs = self._call(state | self._places(weights), rows_of(self.inputs, rows))
            loss = self._criterion(outputs, rows_of(self._labels, rows))
            gradient = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
            fixed = [each.detach() for each in gradient]
            slope = torch.stack([torch.sum(one * other) for one, other in zip(gradient, fixed, strict=True)]).sum()
            product = torch.autograd.grad(slope, list(weights.values()))
            squares.append(_dot(fixed, fixed))
            along.append(_dot(product, fixed))
            total = [one + other for one, other in zip(total, fixed, strict=True)]
        count = len(squares)
        return MicroBatches(tuple(squares), _dot(total, total) / count**2, self._batch_size), along

    def sizes(self, forward: ForwardPass) -> Sizes:
        """Return the sizes of the model and of the reference batch."""
        weights = self.weights().values()
        parameters = sum(each.numel() for each in weights)
        return Sizes(
            parameters=parameters,
            examples=self._examples,
            kernel_examples=count_rows(self._kernel_inputs),
            forward=self._operations / self._examples or 2.0 * parameters,
            activations=sum(each.numel() for each in forward.preactivations.values()) // self._examples,
            features=sum(each.shape[1] for each in forward.features.values()),
            itemsize=max(each.element_size() for each in weights),
            memory=self._memory,
        )

    @contextlib.contextmanager
    def unchanged(self) -> Iterator[None]:
        """Restore the state of all random number generators on exit; run without autocast and compiled graphs."""
        device = self.device
        # A forward pass may draw from the global generators, for which NumPy has no newer interface.
        states = random.getstate(), np.random.get_state()  # noqa: NPY002
        try:
            with (
                torch.random.fork_rng([device] if device.type == "cuda" else []),
                torch.autocast(device.type, enabled=False),
                torch.compiler.set_stance("force_eager"),
            ):
                yield
        finally:
            self._copy = None
            random.setstate(states[0])
            np.random.set_state(states[1])  # noqa: NPY002

    def _parameters(self) -> dict[str, nn.Parameter]:
        """Return the recorded parameters."""
        found = dict(self._model.named_parameters())
        missing = [name for name in self._names if name not in found]
        require(
            not missing,
            f"the model no longer has the parameter {''.join(missing[:1])!r}",
            argument="model",
            value=missing,
            remedy="add parametrisations or replace layers before you create the recorder",
        )
        return {name: found[name] for name in self._names}

    def _private(self) -> nn.Module:
        """Return the private copy for this measurement, with the current attributes of the module."""
        if self._copy is None:
            self._copy = private_copy(self._model)
        return self._copy

    def _call(self, state: Mapping[str, torch.Tensor], inputs: Any) -> torch.Tensor:
        module = self._private()
        args, kwargs = call_arguments(module, inputs)
        with originals_never_run(self._model):
            found = (
                torch.func.functional_call(module, dict(state), args, kwargs, tie_weights=False)
                if state
                else module(*args, **kwargs)
            )
        return outputs_of(found) if self._output is None else self._output(found)

    def _count_operations(self) -> float:
        """Return the floating-point operations of a forward pass, after checking that the pass works."""
        counter = FlopCounterMode(display=False)
        self._private()  # before the counter, which has hooks
        try:
            with torch.no_grad(), counter:
                outputs = self._call(self._state(), self.inputs)
        except InputError:
            raise
        except Exception as error:  # Users' modules can fail in any way.
            raise InputError(
                f"the model fails on the reference batch ({shown_error(error)})",
                argument="reference",
                value=type(error).__name__,
                remedy="give inputs like those used in training, which the model accepts in evaluation mode",
            ) from error
        require(
            outputs.ndim > 0,
            "the model returns a number instead of one output per example",
            argument="output",
            value=0,
            remedy="pass output, a function that extracts the outputs from the object that the model returns",
        )
        return float(counter.get_total_flops())

    def _state(self) -> dict[str, torch.Tensor]:
        """Return the live weights, and copies of the buffers, under all their names."""
        buffers = {name: each.detach().clone() for name, each in buffer_places(self._model).items()}
        return {name: each.detach() for name, each in parameter_places(self._model).items()} | buffers

    def _places(self, weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return weights under all names by which the module reaches them."""
        live = dict(self._model.named_parameters())
        given = {id(live[name]): each for name, each in weights.items()}
        places = parameter_places(self._model)
        return {name: given[id(each)] for name, each in places.items() if id(each) in given}


def _dot(one: Iterable[torch.Tensor], other: Iterable[torch.Tensor]) -> float:
    return float(sum(torch.sum(a.double() * b.double()) for a, b in zip(one, other, strict=True)))


def _first(inputs: Any) -> Any:
    return jax.tree.leaves(inputs)[0]

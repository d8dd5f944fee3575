"""The description of a probe: the data, cost and schedule of a measurement."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from dynascope.diagnosis.schedule import Schedule
from dynascope.diagnosis.snapshot import Snapshot

__all__ = ["Need", "Probe", "ProbeCost", "Sizes"]

Need = Literal[
    "weights",
    "update",
    "gradients",
    "micro_batches",
    "activations",
    "features",
    "outputs",
    "targets",
    "kernel",
    "exact_kernel",
    "curvature",
]
Values = Mapping[str, tuple[Sequence[str], Any]]


class Sizes(NamedTuple):
    """The sizes of a model and of its reference batch, from which costs are estimated.

    Attributes:
        parameters: Number of trainable parameters.
        examples: Number of examples in the reference batch.
        kernel_examples: Number of examples in the kernel.
        forward: Floating-point operations of a forward pass on one example, about twice the number of multiplications.
        activations: Number of pre-activations on one example.
        features: Number of features of all recorded layers.
        itemsize: Bytes of one number.
        memory: Bytes that the kernel may use.
    """

    parameters: int
    examples: int
    kernel_examples: int
    forward: float
    activations: int
    features: int
    itemsize: int
    memory: float


class ProbeCost(NamedTuple):
    """An estimate of the cost of one measurement.

    Attributes:
        operations: Floating-point operations.
        bytes: Peak memory, in addition to the model.
    """

    operations: float
    bytes: float


@dataclasses.dataclass(frozen=True)
class Probe:
    """A measurement of a training run.

    Attributes:
        name: A name.
        description: A sentence that states what the probe measures.
        needs: The parts of a snapshot that the probe reads. Recorders prepare only what the selected probes need.
        measure: Returns the dimensions and values of each measured variable. The names of the weights label the
            dimensions `parameter` and `matrix` (two or more axes); those of the forward pass label `activation` and
            `layer`.
        cost: Estimates the cost from the sizes of the model.
        names: The long name and the units of each variable.
        schedule: The probe runs in the first row after each step of this schedule; None for every row.
        limited: Whether the probe is skipped in rows in which it would exceed the time budget.

    Example:
        >>> from dynascope.diagnosis import probes_of
        >>> [probe.name for probe in probes_of("light")]
        ['weights', 'balance']
    """

    name: str
    description: str
    needs: tuple[Need, ...]
    measure: Callable[[Snapshot], Values]
    cost: Callable[[Sizes], ProbeCost]
    names: Mapping[str, tuple[str, str]]
    schedule: Schedule | None = None
    limited: bool = True

"""Curvature of the loss: the sharpest directions, and the curvature of batch losses along their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from dynascope.diagnosis.measurements.gradient_noise import noise_scale
from dynascope.diagnosis.measurements.kernel import as_numpy
from dynascope.diagnosis.probe import Probe, ProbeCost
from dynascope.diagnosis.schedule import LogSpaced
from dynascope.diagnosis.snapshot import Snapshot
from dynascope.errors import InputError
from dynascope.probes.kernel.distance_and_alignment import kernel_distance

__all__ = [
    "BATCHES",
    "CURVATURE",
    "CURVATURE_BATCH",
    "EXACT_KERNEL",
    "measure_batches",
    "measure_curvature",
    "measure_exact_kernel",
]

CURVATURE_BATCH = 32  # examples in the batches whose curvature is measured, if the batch size is unknown

_Result = TypeVar("_Result")


def measure_curvature(snapshot: Snapshot) -> dict[str, tuple[list[str], Any]]:
    """Measure the largest eigenvalues of the Hessian of the loss on the reference batch."""
    curvatures = _required(snapshot.compute_curvatures)()
    return {"curvature": (["direction"], curvatures), "sharpness": ([], curvatures[0])}


def measure_batches(snapshot: Snapshot) -> dict[str, tuple[list[str], Any]]:
    """Measure the batch sharpness E[gᵀHg]/E‖g‖² and the trace of the noise covariance.

    g and H are the gradient and the Hessian of the loss of a batch. Both quantities come from the batches into which
    the reference batch is split.

    References:
        Andreyev & Beneventano, Edge of stochastic stability, arXiv:2412.20553.
    """
    batches, along = _required(snapshot.compute_batches)()
    noise = noise_scale(batches)
    return {
        "batch_sharpness": ([], sum(along) / sum(batches.squares)),
        "reference_noise": ([], noise["gradient_noise"]),
        "reference_signal": ([], noise["gradient_signal"]),
    }


def measure_exact_kernel(snapshot: Snapshot) -> dict[str, tuple[list[str], Any]]:
    """Measure the distance of the exact neural tangent kernel, averaged over outputs, from initialisation."""
    kernel = as_numpy(_required(snapshot.compute_exact_kernel)())
    initial = None if snapshot.initial is None else snapshot.initial.exact_kernel
    return {
        "exact_kernel_distance": ([], kernel_distance(kernel, kernel if initial is None else initial)),
        "exact_kernel_trace": ([], float(np.trace(kernel)) / len(kernel)),
    }


def _required(compute: Callable[[], _Result] | None) -> Callable[[], _Result]:
    if compute is None:
        raise InputError(
            "the loss is unknown, because criterion or the targets are missing",
            argument="criterion",
            remedy="pass criterion, a function of outputs and targets, and targets in the reference batch",
        )
    return compute


CURVATURE = Probe(
    name="curvature",
    description="Largest eigenvalues of the Hessian of the loss.",
    needs=("curvature",),
    measure=measure_curvature,
    cost=lambda sizes: ProbeCost(600.0 * sizes.examples * sizes.forward, 30.0 * sizes.parameters * sizes.itemsize),
    names={"curvature": ("largest curvatures of the loss", "1"), "sharpness": ("largest curvature of the loss", "1")},
    schedule=LogSpaced(4),
)
BATCHES = Probe(
    name="batches",
    description="Batch sharpness, and the noise of batch gradients on the reference batch.",
    needs=("curvature",),
    measure=measure_batches,
    cost=lambda sizes: ProbeCost(12.0 * sizes.examples * sizes.forward, 6.0 * sizes.parameters * sizes.itemsize),
    names={
        "batch_sharpness": ("curvature of batch losses along their gradients", "1"),
        "reference_noise": ("trace of the covariance of the gradient of one example, on the reference batch", "1"),
        "reference_signal": ("squared norm of the mean gradient, on the reference batch", "1"),
    },
    schedule=LogSpaced(4),
)
EXACT_KERNEL = Probe(
    name="exact_kernel",
    description="Distance of the exact NTK, averaged over outputs, from initialisation.",
    needs=("exact_kernel",),
    measure=measure_exact_kernel,
    cost=lambda sizes: ProbeCost(
        10.0 * sizes.kernel_examples * (3.0 * sizes.forward + 2.0 * sizes.kernel_examples * sizes.parameters),
        min(sizes.memory, 20.0 * sizes.kernel_examples * sizes.parameters * sizes.itemsize),
    ),
    names={
        "exact_kernel_distance": ("distance of the exact NTK from initialisation", "1"),
        "exact_kernel_trace": ("mean diagonal of the exact NTK", "1"),
    },
    schedule=LogSpaced(2),
)

"""Movement of the neural tangent kernel away from initialisation, and its alignment with the targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynascope.diagnosis.probe import Probe, ProbeCost
from dynascope.diagnosis.schedule import LogSpaced
from dynascope.diagnosis.snapshot import Snapshot
from dynascope.probes.kernel.distance_and_alignment import kernel_distance

__all__ = ["KERNEL", "measure_kernel"]


def measure_kernel(snapshot: Snapshot) -> dict[str, tuple[list[str], Any]]:
    """Measure the kernel distance 1 − ⟨K, K₀⟩/(‖K‖‖K₀‖) from initialisation, and the trace of the kernel.

    For comparison, the distance between the kernels of the two halves of the examples is that of unrelated samples.
    """
    kernel = as_numpy(snapshot.kernel)
    initial = snapshot.initial
    start = kernel if initial is None or initial.kernel is None else initial.kernel
    half = len(kernel) // 2
    halves = kernel[:half, :half], kernel[half : 2 * half, half : 2 * half]
    comparable = half > 1 and all(each.any() for each in halves)
    return {
        "kernel_distance": ([], kernel_distance(kernel, start)),
        "kernel_distance_of_halves": ([], kernel_distance(*halves) if comparable else np.nan),
        "kernel_trace": ([], float(np.trace(kernel)) / len(kernel)),
    }


def as_numpy(array: Any) -> np.ndarray:
    """Return an array of any library as a NumPy array.

    Example:
        >>> as_numpy([1.0, 2.0])
        array([1., 2.])
    """
    if hasattr(array, "detach"):  # PyTorch
        array = array.detach().cpu()
        if not array.dtype.is_complex and array.element_size() < 4 and array.is_floating_point():
            array = array.float()  # NumPy has no bfloat16
    array = np.asarray(array)
    # JAX represents bfloat16 by a type that NumPy cannot save.
    return array.astype(np.float32) if array.dtype.kind == "V" else array


KERNEL = Probe(
    name="kernel",
    description="Distance of the pseudo-kernel (NTK of the sum of the outputs) from initialisation.",
    needs=("kernel",),
    measure=measure_kernel,
    cost=lambda sizes: ProbeCost(
        sizes.kernel_examples * (3.0 * sizes.forward + 2.0 * sizes.kernel_examples * sizes.parameters),
        min(sizes.memory, 2.0 * sizes.kernel_examples * sizes.parameters * sizes.itemsize),
    ),
    names={
        "kernel_distance": ("distance of the NTK from initialisation", "1"),
        "kernel_distance_of_halves": ("distance between the pseudo-kernels of two halves of the examples", "1"),
        "kernel_trace": ("mean diagonal of the pseudo-kernel", "1"),
    },
    schedule=LogSpaced(4),
)

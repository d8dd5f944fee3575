"""Two-layer ReLU teachers and unbalanced students, and the distances between a student before and after training."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dynascope.networks.two_layer import TwoLayer
from dynascope.probes.activation_patterns import count_flips, hamming_distance
from dynascope.probes.kernel.distance_and_alignment import kernel_distance
from dynascope.tasks.task import Task

__all__ = ["Setting", "Weights", "distances", "layer_scales", "setting", "student", "tangent_kernel"]


class Weights(NamedTuple):
    """Weights of a two-layer network f(x) = Σ a_i max(w_i·x, 0).

    Attributes:
        first: W, one row w_i per neuron, shape (..., h, d).
        second: a, shape (..., h).
    """

    first: np.ndarray
    second: np.ndarray

    def outputs(self, inputs: np.ndarray) -> np.ndarray:
        """Compute f(x) for inputs of shape (n, d); shape (..., n)."""
        hidden = np.maximum(self.first @ inputs.T, 0)
        return np.einsum("...h,...hn->...n", self.second, hidden)

    def network(self) -> TwoLayer:
        """Make a ReLU network with these weights."""
        width, inputs = self.first.shape
        blank = TwoLayer(inputs, width, 1, activation="relu")
        return blank.with_neurons(np.column_stack([self.first, self.second]))


class Setting(NamedTuple):
    """Data and random draws of one seed.

    Attributes:
        task: The training inputs, and the outputs of the teacher.
        test: The same for test inputs.
        teacher: The teacher.
        directions: Directions of half of the students' neurons, shape (h/2, d).
        signs: Signs of their output weights.
    """

    task: Task
    test: Task
    teacher: Weights
    directions: np.ndarray
    signs: np.ndarray


def setting(
    seed: Any, *, inputs: int, samples: int, test_samples: int, width: int, teacher_width: int, spread: bool = False
) -> Setting:
    """Draw inputs and a teacher uniformly from the unit sphere, and the directions and signs of a student.

    Args:
        seed: Seed of the draw.
        inputs: Number of inputs d.
        samples: Number of training samples.
        test_samples: Number of test samples.
        width: Even number of neurons of the student.
        teacher_width: Number of neurons of the teacher.
        spread: Whether the teacher's directions have equal angles in the plane, and alternating signs; requires two
            inputs. Three such neurons of one sign have the same outputs as their mirror images.
    """
    draw = np.random.default_rng(seed)
    x, more, first, directions = (
        _on_sphere(draw, number, inputs) for number in (samples, test_samples, teacher_width, width // 2)
    )
    if spread:
        angles = draw.uniform(0, 2 * np.pi) + 2 * np.pi * np.arange(teacher_width) / teacher_width
        first = np.column_stack([np.cos(angles), np.sin(angles)])
    signs, own = (draw.choice([-1.0, 1.0], number) for number in (teacher_width, width // 2))
    if spread:
        signs = np.where(np.arange(teacher_width) % 2, -1.0, 1.0)
    teacher = Weights(first, signs)
    data = [Task(each, teacher.outputs(each)[:, None], name="a ReLU teacher") for each in (x, more)]
    return Setting(data[0], data[1], teacher, directions, own)


def layer_scales(overall: float, relative: float) -> tuple[float, float]:
    """The norm of w_i and the size of a_i at the overall scale τ and the relative scale δ.

    ‖w_i‖ = τ α and |a_i| = τ/α with α² = √(1 + r²) − r and r = δ/(2τ²), so that a_i² − ‖w_i‖² = δ and ‖w_i‖ |a_i| = τ².
    """
    r = relative / (2 * overall**2)
    root = np.sqrt(1 + r**2)
    alpha = np.sqrt(1 / (root + r) if r > 0 else root - r)  # without cancellation
    return float(overall * alpha), float(overall / alpha)


def student(directions: np.ndarray, signs: np.ndarray, overall: float, relative: float) -> Weights:
    """Make a student of pairs of neurons with opposite output weights, so that its initial outputs are zero."""
    size, output = layer_scales(overall, relative)
    return Weights(size * np.tile(directions, (2, 1)), output * np.concatenate([signs, -signs]))


def tangent_kernel(weights: Weights, inputs: np.ndarray) -> np.ndarray:
    """Compute the NTK H Hᵀ + (X Xᵀ) ⊙ (A diag(a²) Aᵀ) with H = max(X Wᵀ, 0) and A = 1[X Wᵀ > 0], shape (n, n)."""
    z = inputs @ weights.first.T
    hidden, gates = np.maximum(z, 0), (z > 0) * weights.second
    return hidden @ hidden.T + (inputs @ inputs.T) * (gates @ gates.T)


def distances(before: Weights, after: Weights, inputs: np.ndarray) -> dict[str, float]:
    """Measure how far training moved a student: its NTK, activation patterns and parameters."""
    kernels = [tangent_kernel(each, inputs) for each in (before, after)]
    flips = count_flips(*(inputs @ each.first.T for each in (before, after)))
    moved = np.sum((after.first - before.first) ** 2) + np.sum((after.second - before.second) ** 2)
    return {
        "kernel_distance": float(kernel_distance(*kernels)),
        "hamming_distance": float(hamming_distance(flips).hamming_distance),
        "parameter_distance": float(np.sqrt(moved)),
    }


def _on_sphere(draw: np.random.Generator, number: int, inputs: int) -> np.ndarray:
    normal = draw.normal(size=(number, inputs))
    return normal / np.linalg.norm(normal, axis=1, keepdims=True)

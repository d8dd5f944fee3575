"""Coordinate check: how the changes of layer outputs in training scale with the width of a network."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from annotated_types import Ge

from dynascope.compilation import filter_jit
from dynascope.errors import DivergenceError, DivergenceWarning, InputError
from dynascope.interventions.batched_network import BatchedNetwork, maps_samples
from dynascope.interventions.layer_outputs import layer_outputs
from dynascope.interventions.width_scaling import CoordinateCheck, coordinates_checked, require_widths
from dynascope.tasks import Labelled, Task
from dynascope.theory.regimes import ABCParametrisation
from dynascope.training import Descent, descend
from dynascope.validation import calling, require
from dynascope.validation.bounded import NonNegativeFloat, OpenFraction, PositiveInt

__all__ = ["coordinate_check"]

_FORM = "give a function of a width and a seed that returns a network, or a network and learning rates of its layers"


def coordinate_check(
    make: Callable[[int, int], Any],
    widths: Sequence[PositiveInt],
    task: Task | Labelled,
    method: Descent,
    *,
    parametrisation: ABCParametrisation | None = None,
    seeds: Annotated[int, Ge(2)] = 10,
    confidence: OpenFraction = 0.95,
    tolerance: NonNegativeFloat = 0.2,
) -> CoordinateCheck:
    """Measure how the changes of the outputs of each layer in a few steps of training scale with the width.

    For the outputs h_l of layer l before the activation, the check fits the slope s_l of

        log rms(h_l(k) − h_l(0)) = s_l log n + constant

    against the width n after k steps, where rms is the root mean square over samples and units. In a parametrisation
    that learns features, no slope is negative or positive: the changes of all layers are independent of the width, and
    so is the best learning rate. Networks are trained and measured in float64.

    The slope is a mean over seeds with the interval of Student's t. The interval covers the variation between initial
    weights. It does not cover the difference between the slope at finite widths and the exponent of the limit, which
    decreases with the width.

    Args:
        make: Function of a width and a seed that returns a network: an equinox module that maps a sample or a batch to
            outputs. The function may also return a pair of the network and a mapping from its layers to learning rates,
            which multiply the rate of the method (see `networks.abc_network`). The seeds are 0, 1, 2, ….
        widths: Widths n, at least two.
        task: Inputs and targets.
        method: Optimiser, learning rate, number of steps k, loss and batches; about ten steps suffice.
        parametrisation: Exponents of the parametrisation of the networks, for the expected slopes under SGD (see
            `theory.regimes.abc_class`); the number of its layers must be that of the network. There are no expected
            slopes for an unstable parametrisation.
        seeds: Number of networks at each width.
        confidence: Confidence level of the intervals.
        tolerance: A change counts as constant if the interval of its slope lies within ± this number. The exponents of
            common parametrisations are multiples of ½.

    Returns:
        Changes, slopes with intervals, expected slopes and trends. If training diverges at a width, its layers have the
        trend "diverges".

    Raises:
        InputError: If there are fewer than two widths, if `make` returns no network, if the layers of the networks
            differ between widths, or if the parametrisation has another number of layers.

    References:
        G. Yang et al., Tensor Programs V, arXiv:2203.03466, appendix D.1, for the check; arXiv:2011.14522, theorem 3.3,
        for the exponents.

    Example:
        >>> from dynascope.networks import abc_network
        >>> from dynascope.theory.regimes import abc_parametrisations
        >>> ntk, draw = abc_parametrisations()["NTK"], np.random.default_rng(0)
        >>> task = Task(draw.normal(size=(8, 3)), draw.normal(size=(8, 1)))
        >>> def make(width, seed):
        ...     return abc_network(ntk, width, 3, seed=seed)
        >>> found = coordinate_check(make, [64, 512], task, Descent(learning_rate=0.1, steps=5), parametrisation=ntk)
        >>> found.layers.loc["weights.1", "trend"], found.layers["expected"].tolist()
        ('vanishes', [-0.5, -0.5, 0.0])
    """
    widths = [int(width) for width in widths]
    require_widths(widths)
    names, sizes = (), []
    for width in widths:
        found = _sizes(make, width, task, method, seeds)
        require(
            not sizes or tuple(found) == names,
            f"the networks of width {width} and {widths[0]} have different layers",
            argument="make",
            value=list(found),
            remedy="return networks that differ only in their widths and weights",
        )
        names = tuple(found)
        sizes.append(list(found.values()))
    initial, change = np.transpose(sizes, (2, 1, 0, 3))
    return coordinates_checked(
        names, widths, initial, change, parametrisation, confidence=confidence, tolerance=tolerance
    )


def _sizes(
    make: Callable[[int, int], Any], width: int, task: Task | Labelled, method: Descent, seeds: int
) -> dict[str, np.ndarray]:
    """Root mean squares of the initial outputs and of their changes, shape (2, seeds), of each layer."""
    with calling("make", getattr(make, "__name__", type(make).__name__), _FORM):
        made = [make(width, seed) for seed in range(seeds)]
    pairs = [each if isinstance(each, tuple) and len(each) == 2 else (each, None) for each in made]
    networks = [_in_double_precision(network) for network, _ in pairs]
    mapped = maps_samples(networks[0], np.shape(task.inputs), np.asarray(task.inputs).dtype)
    require(
        mapped is not None,
        f"a network of width {width} cannot be applied to inputs of shape {np.shape(task.inputs)}",
        argument="make",
        value=type(networks[0]).__name__,
        remedy="return networks that map a batch or a sample to outputs",
    )
    run = _with_rates(method, pairs[0][1], "network." if mapped else "")
    starts = [BatchedNetwork(each) if mapped else each for each in networks]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DivergenceWarning)
            record, trained = descend(task, starts, run, return_networks=True)
        finite = np.isfinite(record["loss"].to_numpy()[:, -1])
    except DivergenceError:
        trained, finite = None, np.zeros(seeds, bool)
    found = []
    with jax.enable_x64(True):
        for seed, start in enumerate(starts):
            after = start if trained is None else _member(trained, seed)
            found.append(dict(_root_mean_squares(start, after, np.asarray(task.inputs))))
    return {
        name: np.stack(
            [each[name] if ok else [each[name][0], math.nan] for each, ok in zip(found, finite, strict=True)]
        ).T
        for name in found[0]
    }


@filter_jit
def _root_mean_squares(before: Any, after: Any, inputs: Any) -> list[tuple[str, Any]]:
    """Pairs of a layer and its root mean squares; a compiled program would sort the keys of a dictionary."""
    first, last = (layer_outputs(network, inputs) for network in (before, after))
    changes = ((name, (start, last[name] - start)) for name, start in first.items())
    return [(name, jnp.stack([jnp.sqrt(jnp.mean(each**2)) for each in pair])) for name, pair in changes]


def _member(networks: Any, member: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[member] if eqx.is_inexact_array(leaf) else leaf, networks)


def _in_double_precision(network: Any) -> Any:
    if not isinstance(network, eqx.Module):
        torch = hasattr(network, "named_parameters")
        raise InputError(
            f"make returns an object of type {type(network).__name__}",
            argument="make",
            value=type(network).__name__,
            remedy="use dynascope.torch.coordinate_check for PyTorch modules" if torch else _FORM,
        )
    return jax.tree.map(lambda leaf: np.asarray(leaf, float) if eqx.is_inexact_array(leaf) else leaf, network)


def _with_rates(method: Descent, rates: Mapping[str, float] | None, prefix: str) -> Descent:
    """The method without records, with a learning rate for each layer if rates are given."""
    end = method.steps if method.epochs is None else method.epochs
    plain = dataclasses.replace(method, save=[0, end], statistics=None, probe=None, test=None, checkpoint=None)
    if rates is None:
        return plain
    base: Any = 1.0 if method.learning_rate is None else method.learning_rate
    require(
        isinstance(base, int | float | np.number) and isinstance(rates, Mapping),
        "make returns learning rates of layers, but the method has no single learning rate",
        argument="method",
        value=str(base),
        remedy="give one number as learning_rate of the method, and a mapping from layers to rates in make",
    )
    scaled = {f"{prefix}{name}": base * float(rate) for name, rate in rates.items()}
    return dataclasses.replace(plain, learning_rate=scaled)

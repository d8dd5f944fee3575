"""The theory of lazy training: kernel regression with the NTK at initialisation."""

from __future__ import annotations

import math

import equinox as eqx
import jax
import numpy as np
import xarray as xr

from dynascope.prediction.case import Case
from dynascope.prediction.ntk_modes import BLOCK, COPIES, tangent_modes
from dynascope.prediction.theories.loss_record import Curve, curve_record, settled_times
from dynascope.prediction.theories.theory import Theory
from dynascope.theory.assumptions import LAZY_TRAINING
from dynascope.theory.domain import Domain
from dynascope.theory.features import eigenspectrum, kernel_regression_error, training_flow

__all__ = ["KERNELS"]

_NAME = "kernel-regression"
_ERROR = (
    0.15  # error of the loss per relative movement of the weights; twice the mean over curves of two and three layers
)
_BLOCKS = 4  # blocks of J in memory at once
_LEAST = 1e-3  # minimum tolerance, since the observed flow is integrated numerically


def _solve(case: Case) -> xr.Dataset:
    modes = tangent_modes(case.start, case.task.inputs, case.task.targets)
    times = settled_times(modes.loss, floor=modes.rest / 2, first=1 / max(modes.rates.max(initial=0.0), 1e-300))
    moved = 0.0 if case.linear_in_weights else modes.movement(float(times[-1]))
    record = curve_record(
        _NAME,
        case,
        times,
        Curve(modes.loss(times), {}),
        notes=[],
        tolerance=max(_LEAST, _ERROR * moved),
        reason=f"the weights of the linearised network move by {moved:.2g} of their norm, so the error of the loss "
        f"is at most {_ERROR:g} times this fraction of the initial loss",
    )
    return record.assign_attrs(movement=moved, kernel_modes=len(modes.rates))


def _sides(case: Case) -> tuple[int, int]:
    """Return the numbers of rows and columns of ∂f/∂θ on the samples."""
    weights = sum(math.prod(np.shape(leaf)) for leaf in jax.tree.leaves(eqx.filter(case.network, eqx.is_inexact_array)))
    return case.task.samples * case.task.output_dimension, weights


def _memory(case: Case) -> float:
    return 8.0 * (COPIES * min(_sides(case)) ** 2 + _BLOCKS * BLOCK)


def _operations(case: Case) -> float:
    rows, weights = _sides(case)
    side = min(rows, weights)
    return (
        0.1 * side**2 * max(rows, weights) + 0.6 * side**3
    )  # large matrix products run ten times as fast as other operations


KERNELS = (
    Theory(
        name=_NAME,
        function=training_flow,
        network="any network that maps rows of inputs to outputs",
        gives="the loss over time of the linearised network, determined by its NTK",
        equation=r"\dot r = -\frac{1}{n} K r, \quad K = J J^\top, \quad J = \frac{\partial f}{\partial \theta} \text{ "
        r"at } t = 0",
        fits=lambda case: case.maps_rows and not case.normalised,
        solve=_solve,
        domain=Domain(
            network="any, linearised about its initial weights",
            data="any samples",
            start="lazy: large weights, or a wide network in the standard or NTK parametrisation",
            gives="the loss over time",
            exact=False,
            reference="arXiv:1806.07572; arXiv:1812.07956",
            assumes=(LAZY_TRAINING,),
        ),
        assumes=(LAZY_TRAINING,),
        exact=False,
        limit="lazy limit",
        staircase=False,
        operations=_operations,
        memory=_memory,
        error=lambda case: f"error of the loss up to {100 * _ERROR * LAZY_TRAINING.limit:.1g} % of the initial loss",
        beside=(eigenspectrum, kernel_regression_error),
    ),
)

"""Theories of networks that compute group operations: addition modulo p, and composition of group elements."""

from __future__ import annotations

import numpy as np

from dynascope.networks.two_layer import TwoLayer
from dynascope.prediction.case import Case
from dynascope.prediction.theories.theory import Theory
from dynascope.prediction.theories.time_tolerance import Solved, Trust, neurons_of
from dynascope.results import Staircase
from dynascope.tasks.algebra.group_composition import SampledComposition
from dynascope.tasks.algebra.modular_addition import ModularAddition
from dynascope.theory.groups import composition_staircase
from dynascope.theory.modular import modular_addition_staircase

__all__ = ["ALGEBRA"]


def _modular_addition(case: Case) -> Staircase:
    options = {"neurons": np.asarray(case.network.neurons), "normalised": case.normalised}
    return modular_addition_staircase(case.task.encoding, scale=case.scale, **options)


def _group_composition(case: Case) -> Staircase:
    return composition_staircase(*case.task.composition, scale=case.scale)


def _composes(case: Case) -> bool:
    """Whether a network with activation zᵏ composes k group elements, in an encoding that the theory covers."""
    composed = case.task.composition if isinstance(case.task, SampledComposition) else None
    if composed is None or case.activation is None or not case.normalised:
        return False
    x, k = composed.encoding, composed.sequence_length
    power = case.network.activation
    odd = (-1) ** power.degree
    return (
        (power.degree, power.positive, power.negative) == (k, 1, odd)
        and k > 1
        and bool(abs(x.mean()) <= 1e-9 * np.ptp(x))
    )


ALGEBRA = (
    Theory.of(
        "modular-addition",
        modular_addition_staircase,
        equation=r"\mathcal{L} = \frac{1}{2} \left( \|x\|^2 - \sum_{\xi \in K} E_\xi \right), \quad E_\xi = "
        r"\frac{2}{p} \left| \hat{x}[\xi] \right|^2",
        fits=lambda case: (
            isinstance(case.task, ModularAddition)
            and isinstance(case.network, TwoLayer)
            and case.activation == "quadratic"
        ),
        solve=Solved(
            Trust(
                kind="two-layer quadratic",
                time_offset=1.0,
                time_floor=0.0,
                time_offset_reason="times are known to within the time in which neurons grow by a factor of e",
                slope_tolerance=0.05,
                slope_reason="the neglected part of the times is nearly the same at both scales",
            ),
            _modular_addition,
        ),
        staircase=True,
        special=True,
        operations=lambda case: 1e3 * neurons_of(case),
    ),
    Theory.of(
        "group-composition",
        composition_staircase,
        equation=r"t_\rho = \frac{\log(1/\alpha)}{(k+1) \, U^*_\rho}, \quad E_\rho = \frac{c_\rho d_\rho}{n} \left\| "
        r"\hat{x}(\rho) \right\|^2",
        fits=_composes,
        solve=Solved(
            Trust(
                kind="two-layer power",
                time_offset=2.7,
                time_floor=0.0,
                time_offset_reason="times are known up to an offset that is independent of log(1/scale) and was "
                "at most 2.6 in thirty runs",
                slope_tolerance=0.05,
                slope_reason="the neglected part of the times is nearly the same at both scales",
            ),
            _group_composition,
        ),
        staircase=True,
        special=True,
        operations=lambda case: 1e3 * case.task.composition.group.order**3.0,
    ),
)

"""Names of the phases of wide networks: those that exponents say, and those of the diagram."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from dynascope.comparison import Claim
from dynascope.theory.regimes.phases import Parametrisation, phase, stable_rates

__all__ = ["ZERO", "as_told", "phase_name", "seen_phases", "told_phases"]

ZERO = 0.5  # a fitted exponent of smaller size counts as zero; those of the table are whole numbers


def seen_phases(kernel_exponents: np.ndarray, speed_exponents: np.ndarray) -> dict[str, list[str]]:
    """The phases that measured exponents say, at rates that do not scale and at stable ones."""
    return {
        "phase": [phase_name(*pair) for pair in zip(kernel_exponents, speed_exponents, strict=True)],
        "phase_at_stable_rates": [phase_name(each, 0.0) for each in kernel_exponents],
    }


def told_phases(entries: Iterable[Parametrisation]) -> dict[str, list[str]]:
    """The same phases as the diagram has them."""
    names = [(phase(each).name, phase(stable_rates(each)).name) for each in entries]
    return dict(zip(("phase", "phase_at_stable_rates"), map(list, zip(*names, strict=True)), strict=True))


def as_told(seen: Mapping[str, list[str]], told: Mapping[str, list[str]]) -> Claim:
    """Every phase that is seen is that of the diagram."""
    same = [one == other for name in told for one, other in zip(seen[name], told[name], strict=True)]
    statement = "Each way to scale networks is in its phase of the diagram, at constant rates and at stable ones."
    return Claim("phases", statement, sum(same), least=len(same))


def phase_name(kernel_exponent: float, speed_exponent: float) -> str:
    """The phase that a pair of exponents says."""
    if abs(speed_exponent) > ZERO:
        return "unstable" if speed_exponent > 0 else "frozen"
    return "kernel" if kernel_exponent < -ZERO else "learning"

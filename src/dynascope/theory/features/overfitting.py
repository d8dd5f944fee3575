"""Benign and malignant overfitting of a linear model that interpolates noise.

A few strong modes and a long tail of weak modes can interpolate any noisy samples. The strong modes fit the signal in
their span, and the tail fits the remainder with spikes at the samples. A target in the strong modes is learned despite
the noise; a target in the tail is lost.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.theory.features import KernelRegression, kernel_regression_error
from dynascope.validation import checked, require
from dynascope.validation.bounded import FiniteFloat, NonNegativeFloat, PositiveFloat, PositiveInt

__all__ = ["Overfitting", "OverfittingSetup", "overfitting_error"]

_SEPARATED = 10.0  # ratio of the rates of signal and tail below which the two phases overlap


@checked
@dataclasses.dataclass(frozen=True)
class OverfittingSetup:
    """A kernel spectrum of d modes with eigenvalue 1 and p − d modes with eigenvalue r, and a target in a single mode.

    The defaults are the benign setup of figure 1.3 of the source, with the target sin(2πx) in the first of the modes √2
    sin(2πkx). `target_mode=10` is the malignant setup of figure 1.5, with the target sin(20πx) in the tenth mode.

    Attributes:
        samples: Number of samples n.
        modes: Number of modes p.
        strong_modes: Number of strong modes d, with d < n < p.
        target_mode: Index of the target mode, counted from 1; indices up to d are strong modes.
        target_coefficient: Coefficient v of the target v e_k.
        noise_variance: Variance σ² of the label noise in training.
        tail_intensity: Eigenvalue (intensity) r of the weak modes; 1/(p − d) if not given, a value that separates
            signal from noise.

    Raises:
        InputError: If a number is out of range.

    References:
        Nam, DPhil thesis (2024), figures 1.3 and 1.5.

    Example:
        >>> OverfittingSetup().is_benign, OverfittingSetup(target_mode=10).is_benign
        (True, False)
    """

    samples: PositiveInt = 100
    modes: PositiveInt = 2000
    strong_modes: PositiveInt = 5
    target_mode: PositiveInt = 1
    target_coefficient: FiniteFloat = 0.5**0.5
    noise_variance: NonNegativeFloat = 0.09
    tail_intensity: PositiveFloat | None = None

    def __post_init__(self):
        require(
            self.strong_modes < self.samples < self.modes,
            f"strong_modes, samples and modes are {self.strong_modes}, {self.samples} and {self.modes}",
            argument="samples",
            value=self.samples,
            remedy="choose strong_modes < samples < modes",
        )
        require(
            self.target_mode <= self.modes,
            f"target_mode is {self.target_mode}, but there are only {self.modes} modes",
            argument="target_mode",
            value=self.target_mode,
            remedy=f"choose an index from 1 to {self.modes}",
        )

    @property
    def tail(self) -> float:
        """Intensity r of each weak mode."""
        return 1 / (self.modes - self.strong_modes) if self.tail_intensity is None else self.tail_intensity

    @property
    def printed_tail(self) -> float:
        """Intensity n/(p − d) printed in equation 1.36 of the source, at which the two phases of training coincide."""
        return self.samples / (self.modes - self.strong_modes)

    @property
    def is_benign(self) -> bool:
        """Whether the target is in a strong mode."""
        return self.target_mode <= self.strong_modes

    @property
    def intensity(self) -> Float[np.ndarray, " modes"]:
        """Intensities ρ_k of all modes, shape (p,)."""
        return np.where(np.arange(self.modes) < self.strong_modes, 1.0, self.tail)

    @property
    def target_coefficients(self) -> Float[np.ndarray, " modes"]:
        """Target coefficients v_k = ⟨e_k|f*⟩, shape (p,)."""
        return self.target_coefficient * (np.arange(1, self.modes + 1) == self.target_mode)


class Overfitting(NamedTuple):
    """Learnabilities, errors and rates of a model that interpolates noisy samples, averaged over draws of the samples.

    Attributes:
        strong_learnability: Learnability L of the strong modes.
        tail_learnability: Learnability L of a weak mode.
        target_learnability: Learnability L of the target mode.
        effective_ridge: Effective ridge κ.
        overfitting_coefficient: Overfitting coefficient E₀.
        noisy_mse: E(f̂ − y)² on new samples with label noise.
        clean_mse: E(f̂ − f*)² at convergence.
        window_mse: E(f̂ − f*)² between the two phases of training, when the strong modes are fitted and the tail is
            not.
        signal_rate: Decay rate of the training error in the strong modes, divided by η.
        tail_rate: Rate r(p − d)/n at which the tail then fits the rest of the labels, divided by η.
        fitting_window: (1/signal_rate, 1/tail_rate), the times η t between which only the signal is fitted.
        warnings: A sentence for each reason why training does not have two separate phases.
    """

    strong_learnability: float
    tail_learnability: float
    target_learnability: float
    effective_ridge: float
    overfitting_coefficient: float
    noisy_mse: float
    clean_mse: float
    window_mse: float
    signal_rate: float
    tail_rate: float
    fitting_window: tuple[float, float]
    warnings: tuple[str, ...]

    __repr__ = short_repr

    @property
    def test_loss(self) -> float:
        """Loss L = ½ E(f̂ − f*)² at convergence."""
        return self.clean_mse / 2


@covers(
    network="linear model on fixed features, a few strong modes and a long tail",
    data="random noisy samples, features treated as Gaussian, large n",
    start="zero",
    gives="learned fraction of the target, errors, and times at which signal and noise are fitted",
    reference="Nam, DPhil thesis (2024), 1.36",
    exact=False,
)
def overfitting_error(setup: OverfittingSetup) -> Overfitting:
    """Compute learnabilities, errors and rates of a model that interpolates noise.

    The errors follow from `kernel_regression_error` without a ridge, for the eigenvalues 1 with multiplicity d and r
    with multiplicity p − d. The tail adds r(p − d)/n to every eigenvalue of K/n. If r ≪ n/(p − d), training therefore
    has two phases, with rates of order 1 and r(p − d)/n. For r = 1/(p − d), κ ≈ 1/n, L ≈ 1 − 1/n for strong modes, and
    the window is 1 ≪ η t ≪ n. The value printed in the source, r = n/(p − d), leads to κ ≈ 1, L ≈ ½ and no window. In
    the window, training is equivalent to regression on the d strong modes, with the error E(f̂ − f*)² = (σ² + ‖f⊥‖²)
    n/(n − d) − σ².

    Args:
        setup: The spectrum, the samples and the target.

    Returns:
        An `Overfitting`, in float64.

    Raises:
        InputError: If a number in the setup is out of range.

    References:
        Nam, DPhil thesis (2024), section 1.6 and equation 1.36, with a corrected tail intensity.

    Example:
        >>> for found in map(overfitting_error, (OverfittingSetup(), OverfittingSetup(target_mode=10))):
        ...     print(f"{found.target_learnability:.6f} {found.clean_mse:.6f} {found.fitting_window[1]:.4g}")
        0.990080 0.009425 100
        0.047644 0.510077 100
    """
    weak = setup.modes - setup.strong_modes
    power = setup.target_coefficient if setup.is_benign else 0.0, 0.0 if setup.is_benign else setup.target_coefficient
    end = _errors(setup, np.array([1.0, setup.tail]), np.array(power), np.array([setup.strong_modes, weak], float), 0.0)
    strong, tail = (float(each) for each in np.asarray(end.learnability))
    window = _errors(setup, np.ones(1), np.array(power[:1]), np.array([setup.strong_modes], float), power[1] ** 2)
    tail_rate = setup.tail * weak / setup.samples
    signal_rate = 1.0 + tail_rate
    warnings = ()
    if signal_rate < _SEPARATED * tail_rate:
        warnings = (
            f"Signal and noise are fitted in one phase: the rate of the tail is {tail_rate:.3g}, and the rate of the "
            f"signal is {signal_rate:.3g}. A tail intensity far below n/(p − d) = {setup.printed_tail:.3g} separates "
            "them.",
        )
    return Overfitting(
        strong_learnability=strong,
        tail_learnability=tail,
        target_learnability=strong if setup.is_benign else tail,
        effective_ridge=float(end.effective_ridge),
        overfitting_coefficient=float(end.overfitting_coefficient),
        noisy_mse=float(end.noisy_mse),
        clean_mse=float(end.clean_mse),
        window_mse=float(window.clean_mse),
        signal_rate=signal_rate,
        tail_rate=tail_rate,
        fitting_window=(1 / signal_rate, 1 / tail_rate),
        warnings=warnings,
    )


def _errors(
    setup: OverfittingSetup, intensity: np.ndarray, power: np.ndarray, count: np.ndarray, unreachable: float
) -> KernelRegression:
    return kernel_regression_error(
        intensity,
        power,
        setup.samples,
        noise_variance=setup.noise_variance,
        unreachable_power=unreachable,
        multiplicity=count,
    )

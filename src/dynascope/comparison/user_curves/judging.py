"""Compare a prediction with a user's loss curve: initial loss, jumps and shape, with warnings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from dynascope.comparison.jumps import ESTIMATED, between_points, compare_curve, compare_staircases, curve_discriminates
from dynascope.comparison.user_curves.reading import CHOOSE_A_LOSS, numbers, read_curve
from dynascope.comparison.user_curves.resolution import TOO_ROUGH, MonotoneFit, monotone_fit, resolve_jumps
from dynascope.comparison.user_curves.units import LOSSES, LossName, factor_of, matching_conventions, needed_facts
from dynascope.errors import InputError
from dynascope.results import StaircaseView
from dynascope.results import staircase_names as names
from dynascope.results.numbers import number
from dynascope.results.repeated_sentences import gathered_reasons, numbered
from dynascope.results.staircase import with_slow_jumps, with_tolerances
from dynascope.results.staircase_view import is_staircase
from dynascope.validation import require

__all__ = [
    "bare_losses",
    "compare_with_staircase",
    "delay_by_steps",
    "fastest_growth",
    "jump_warnings",
    "learning_rate_warnings",
    "other_initial_weights",
    "with_step_tolerances",
]

_FIRST = 0.02  # error of the first loss, over the predicted one
_FEW = 20  # logged losses; in a shorter noisy curve, none may rise by chance
_NOISE_OF_FEW = 0.5  # of the first loss, which may be that of a small minibatch
_SETTLED = 0.25  # required duration of the last plateau, relative to the time of its jump
_ALIKE = 1.3  # ratio of the largest to the smallest among ratios that are about the same
_MISTAKEN = 1.5  # a smaller factor between learning rates is hardly a mistake
_LATE = 0.05  # relative delay of jumps due to large steps, above which there is a warning
_VERY_LATE = 2.0  # above which the learning rate or the units of the data are probably wrong
_ROUGH = 0.1  # of the initial loss; a larger tolerance could not exclude half or twice the times
_STEPS_REASON = (
    "the predicted lag of gradient descent behind gradient flow, and the change in the loss between logged steps"
)


def bare_losses(losses: Any, predicted: xr.Dataset) -> InputError:
    """Return the error for losses without a definition; the error names the definitions that match the first loss."""
    initial = float(predicted.attrs.get(names.INITIAL_LOSS, 0.0))
    first = float(numbers("losses", read_curve(losses).losses)[:1].sum())
    known: list[LossName] = [name for name in LOSSES if needed_facts(name) <= predicted.attrs.keys()]
    fitting: list[LossName] = [
        name for name in known if abs(first - factor_of(name, predicted.attrs) * initial) <= _FIRST * first
    ]
    remedy = f"the first loss fits {_named(fitting)}" if fitting else CHOOSE_A_LOSS
    return InputError(
        "observed contains losses without a learning rate or a loss definition",
        argument="observed",
        value=type(losses).__name__,
        remedy=f"give dynascope.user_curve(losses, learning_rate=…, loss=…); {remedy}",
    )


def other_initial_weights(observed: xr.Dataset, predicted: xr.Dataset) -> str:
    """Explain why a curve cannot have started from the weights given to `predict`; empty if it can.

    A first loss above the loss of these weights shows that the run started from other weights. A lower first loss may
    be a mean over steps, or logged after some steps. Noise, for example due to minibatches, is bounded by the largest
    rise of the curve; with fewer than 20 logged losses, the bound is at least half of the first loss.

    Args:
        observed: The record of a curve, as returned by `user_curve`.
        predicted: A prediction in the units of the curve. The result is empty for random weights drawn by `predict`,
            and for tasks without samples, whose loss differs from the training loss anyway.

    Example:
        >>> from dynascope.comparison import user_curve
        >>> from dynascope.results import make_record
        >>> theory = make_record({"loss": (["time"], [0.5, 0.4])}, {"time": [0.0, 9.0]}, attributes={"samples": 20})
        >>> other_initial_weights(user_curve([0.5, 0.4], learning_rate=0.1, loss="squared"), theory)
        ''
        >>> print(other_initial_weights(user_curve([1.7, 0.4], learning_rate=0.1, loss="squared"), theory))
        The first loss of the curve is 1.7, but the weights given to predict have a loss of 0.5, so these weights...
    """
    facts, convention = predicted.attrs, observed.attrs["loss_convention"]
    known = "loss" in predicted and predicted["loss"].dims == ("time",) and float(predicted["time"][0]) == 0
    if not known or facts.get("weights") == "drawn" or "samples" not in facts:
        return ""
    loss, start = observed["loss"].to_numpy(), float(predicted["loss"][0])
    noise = float(np.max(loss - np.minimum.accumulate(loss)))
    tolerance = float(facts.get(f"{names.CURVE if is_staircase(predicted) else 'loss_maximum'}_tolerance", 0.0))
    if len(loss) < _FEW:
        noise = max(noise, _NOISE_OF_FEW * loss[0])
    if loss[0] - start <= (_FIRST + tolerance) * loss[0] + noise:
        return ""
    found = f"The first loss of the curve is {number(loss[0], 3)}, but the weights given to predict have a loss of "
    found += number(start, 3)
    others = matching_conventions(loss[0] / start, convention, facts, _FIRST) if start > 0 else []
    if others:
        return f"{found}. Is the definition {_named(others)} rather than loss={convention!r}?"
    return (
        f"{found}, so these weights are probably not those of step 0. Before training, copy the model with "
        "copy.deepcopy(model), and predict from the copy. Also check that the data and loss= match the run."
    )


def compare_with_staircase(
    observed: xr.Dataset, predicted: xr.Dataset, *, tolerance: tuple[float, str], chosen: bool = False
) -> tuple[xr.Dataset, xr.Dataset, dict[str, float], dict[str, float]]:
    """Return the residual of a predicted staircase against a user's curve, and the errors of its quantities.

    A jump is `unclear` and not scored if the curve was logged too rarely, if noise hides the jump, or if large steps
    explain its delay. The same holds if the tolerance exceeds a third, which would hide a wrong learning rate. The
    errors due to logging and noise are added to the tolerance of the times. The level of a plateau is scored if the
    next jump is observed, or if it is the last plateau and lasts long enough.

    Args:
        observed: The result of `user_curve`.
        predicted: A staircase in the units of the curve.
        tolerance: The relative tolerance of times, and its reason.
        chosen: Whether the user chose the tolerance, which is then not changed.

    Returns:
        The prediction with the new tolerance and with warnings about the curve; and the residual, the errors and the
        estimated tolerances, as returned by `jumps.compare_staircases`.

    Raises:
        InputError: The prediction is an ensemble.
    """
    if predicted.attrs.get("weights") == "drawn":
        # The times of other random weights differ by up to the tolerance that theory states for unknown weights.
        predicted = predicted.drop_vars([names.TIME_UNCERTAINTY, names.LEVEL_UNCERTAINTY], errors="ignore")
    staircase = StaircaseView(predicted)
    require(
        staircase.times.ndim == 1,
        f"the prediction is an ensemble of {staircase.times.size // max(predicted.sizes['jump'], 1)} staircases",
        argument="predicted",
        value=dict(predicted.sizes),
        remedy="select the member with the initial weights of the run",
    )
    time, loss = observed["time"].to_numpy(), observed["loss"].to_numpy()
    first = float(staircase.times[0]) if len(staircase.times) and np.isfinite(staircase.times[0]) else 0.0
    curve = monotone_fit(time, loss, first / 2)
    momentum = float(observed.attrs.get("momentum", 0.0))
    step = observed.attrs["largest_step"] * (1 - momentum) / (1 + momentum)
    growth = fastest_growth(staircase) * step
    late = delay_by_steps(growth, step / first if first > 0 else 0.0, momentum)
    known = staircase.time_uncertainty
    if known is not None and tolerance[0] > TOO_ROUGH and not chosen and not staircase.slow.all():
        delay = f"; plus {100 * late:.1g} % for the step size" if late >= 0.005 else ""
        tolerance = float(known[~staircase.slow].max()) + late, ESTIMATED + delay
    units = observed["time"].attrs["units"].removeprefix("optimiser ")
    resolved = resolve_jumps(staircase, curve, tolerance[0], late=late, chosen=chosen, units=units)
    denoised = observed.assign(loss=("time", curve.loss))
    residual, errors, estimated = compare_staircases(
        denoised,
        _with_levels_to_judge(with_slow_jumps(predicted, resolved.reasons), resolved.found),
        at_other_scale=None,
        tolerance=resolved.allowed + late,
    )
    if known is not None and staircase.curve is not None:
        blurred = late / 2 + 3 * curve.error(time[0]) / loss[0] + between_points(denoised, predicted)
        predicted = _with_curve_tolerance(predicted, blurred)
        discriminates = curve_discriminates(denoised, predicted, predicted.attrs[f"{names.CURVE}_tolerance"])
        errors[names.CURVE] = compare_curve(denoised, predicted) if discriminates else np.nan
    unclear = np.array([bool(each) for each in resolved.reasons], dtype=bool) & ~staircase.slow
    status = np.where(unclear, names.UNCLEAR, residual[names.STATUS].to_numpy())
    allowed = np.full(len(status), resolved.allowed)
    residual = residual.assign({names.STATUS: ("jump", status.astype(str)), names.TIME_TOLERANCE: ("jump", allowed)})
    scored = status == names.JUDGED
    seen = np.isfinite(resolved.found)
    for name in (names.OBSERVED_JUMP_TIME, names.TIME_ERROR):
        residual[name] = residual[name].where(seen)
    if curve.noisy:
        errors[names.EXTRA_JUMPS] = np.nan
    if time[0] > first / 2 or 3 * curve.error(time[0]) > _FIRST * loss[0]:
        errors[names.INITIAL_LOSS] = np.nan
    if 3 * curve.unit / 4 > _FIRST * loss[0]:
        errors[names.LEVEL] = np.nan
    warnings = [
        *predicted.attrs.get("warnings", []),
        *jump_warnings(np.where(unclear, resolved.reasons, "").tolist()),
        *_curve_warnings(observed, predicted, curve, errors[names.INITIAL_LOSS], late, growth),
        *learning_rate_warnings(staircase.times[scored] / resolved.found[scored], resolved.allowed),
    ]
    predicted = predicted.assign_attrs(warnings=warnings)
    reason = tolerance[1] + resolved.added
    return with_tolerances(predicted, jump_time=(resolved.allowed, reason)), residual, errors, estimated


def with_step_tolerances(
    observed: xr.Dataset, predicted: xr.Dataset, errors: dict[str, float]
) -> tuple[xr.Dataset, dict[str, float]]:
    """Widen the tolerances of a predicted loss curve by the deviation of gradient descent from gradient flow.

    On a straight path with speed f = |∇L|, gradient descent with rate η follows the field f − η f f′ / 2 to first order
    and lags behind gradient flow by (η / 2) ln(f / f(0)). As L′ = −f², the lag is ¼ ln(L′ / L′(0)) steps, largest where
    the loss falls fastest. One more step is allowed for higher orders and curved paths.

    Args:
        observed: The record of a user's curve.
        predicted: The predicted loss over time, in the units of the curve.
        errors: The mean and the largest error of the loss.

    Returns:
        The prediction with tolerances widened by the effect of the lag, and at least as large as the change in the loss
        between logged steps. If the effect or the change exceeds a tenth of the initial loss, the errors are NaN and
        nothing can be scored.

    Example:
        >>> run = xr.Dataset({"loss": ("time", [1.0, 0.96, 0.93])}, {"time": [0.0, 0.04, 0.08]})
        >>> theory = xr.Dataset({"loss": ("time", [1.0, 0.96, 0.92])}, {"time": [0.0, 0.04, 0.08]})
        >>> theory, errors = with_step_tolerances(run, theory.assign_attrs(loss_tolerance=0.001), {"loss": 0.02})
        >>> round(theory.attrs["loss_tolerance"], 6), errors
        (0.04, {'loss': 0.02})
    """
    time, loss = observed["time"].to_numpy(), observed[names.CURVE_LOSS].to_numpy()
    logged = float(np.nanmax(np.abs(np.diff(loss)), initial=0.0) / abs(loss[0]))
    known, expected = predicted["time"].to_numpy(), predicted[names.CURVE_LOSS].to_numpy()
    falls = -np.diff(expected)
    # Slower decreases drown in rounding errors.
    speeds = np.maximum(falls, np.finfo(float).eps * expected[0]) / np.diff(known)
    lag = (1 + np.log(speeds.max() / speeds[0]) / 4) * float(observed.attrs.get("largest_step", np.max(np.diff(time))))
    there = time[(time >= known[0]) & (time <= known[-1])]
    now, before = np.interp(there, known, expected), np.interp(there - lag, known, expected)
    most = float(np.max(np.abs(before - now)) / now.max())
    mean = float(np.linalg.norm(before - now) / np.linalg.norm(now))
    limits = {}
    for name in errors:
        known_error = float(predicted.attrs.get(f"{name}_tolerance", 0.0))
        limits[f"{name}_tolerance"] = max(logged, known_error + (most if name.endswith("_maximum") else mean))
        limits[f"{name}_tolerance_reason"] = _STEPS_REASON
    if not max(logged, most) <= _ROUGH:  # also NaN
        errors = dict.fromkeys(errors, np.nan)
    return predicted.assign_attrs(limits), errors


def jump_warnings(reasons: list[str]) -> Iterator[str]:
    """Yield one sentence for each reason why jumps are not scored."""
    for jumps, reason in gathered_reasons(list(enumerate(reasons, start=1))):
        subject = f"Jump {jumps[0]} is" if len(jumps) == 1 else f"Jumps {numbered(jumps)} are"
        yield f"{subject} not scored: {reason}."


def learning_rate_warnings(ratios: Float[np.ndarray, " scored"], allowed: float) -> Iterator[str]:
    """Warn if all jumps occur too early or too late by about the same factor.

    Example:
        >>> [len(list(learning_rate_warnings(np.array(ratios), 0.12))) for ratios in ([2.0, 2.1], [2.0, 1.0])]
        [1, 0]
    """
    ratios = ratios[np.isfinite(ratios)]
    if not len(ratios) or np.max(ratios) > _ALIKE * np.min(ratios):
        return
    ratio = float(np.median(ratios))
    if abs(ratio - 1) > allowed and max(ratio, 1 / ratio) > _MISTAKEN:
        factor = number(ratio, 3)
        yield (
            f"The predicted times are about {factor} times the observed ones. Was the learning rate {factor} times the "
            "stated one, or was the optimiser not plain gradient descent?"
        )


def fastest_growth(staircase: StaircaseView) -> float:
    """Return the fastest growth rate of small weights; zero if they do not grow exponentially."""
    record = staircase.record
    if not staircase.exponential or not len(staircase.times):
        return 0.0
    rates = record[names.GROWTH_RATE].to_numpy() if names.GROWTH_RATE in record else 1 / staircase.accelerated_times
    return float(np.nanmax(np.where(np.isfinite(rates), rates, np.nan), initial=0.0))


def delay_by_steps(growth: float, step: float, momentum: float) -> float:
    """Return the relative delay of the first jump under gradient descent with momentum β, compared with gradient flow.

    Small weights that grow as eᵍᵗ under gradient flow follow wₙ₊₁ = (1 + β + (1 − β) x) wₙ − β wₙ₋₁ in steps of
    duration s, where x = g s. They grow by the factor z = (b + √(b² − 4β)) / 2 with b = 1 + β + (1 − β) x in each step,
    so times are longer by the factor x / ln z. From rest, the growing solution has the amplitude (z − β) / (z − β / z),
    which adds the delay until the velocity has built up.

    Args:
        growth: x, the growth in one step of the fastest-growing weights under gradient flow; zero if they do not grow
            exponentially.
        step: The duration s of a step, relative to the time of the first jump.
        momentum: β, at least 0 and below 1.

    Example:
        >>> round(delay_by_steps(0.1, 0.01, 0.0), 3), round(delay_by_steps(0.0508, 1 / 195, 0.9), 3)
        (0.049, 0.386)
    """
    if growth <= 0:
        return step * momentum / (1 - momentum)
    total = 1 + momentum + (1 - momentum) * growth
    factor = (total + np.sqrt(total**2 - 4 * momentum)) / 2
    amplitude = (factor - momentum) / (factor - momentum / factor)
    return float(growth / np.log(factor) - 1 - step * np.log(amplitude) / np.log(factor))


def _curve_warnings(
    observed: xr.Dataset, predicted: xr.Dataset, curve: MonotoneFit, first_error: float, late: float, growth: float
) -> Iterator[str]:
    """Warn about a wrong loss definition, other data, noise, and large steps."""
    staircase, loss = StaircaseView(predicted), observed.attrs["loss_convention"]
    if first_error > _FIRST:
        ratio = float(curve.loss[0] / staircase.levels[0])
        found = f"The first loss is {number(ratio, 3)} times the predicted one"
        others = matching_conventions(ratio, loss, predicted.attrs, _FIRST)
        if others:
            yield f"{found}. Is the definition {_named(others)} rather than loss={loss!r}?"
        else:
            yield f"{found}. Check that the data are centred and scaled as in the run, and that the scale is small."
    if curve.noisy:
        yield (
            f"The loss rises by up to {number(100 * curve.rise, 2)} % of its initial value, as with minibatches or a "
            "large learning rate, but theory assumes small full-batch steps. The best decreasing fit of the loss is "
            "compared instead, and extra plateaus are not counted."
        )
    if late > _VERY_LATE:
        yield (
            "The learning rate is much too large for data in these units: jumps occur about "
            f"{number(1 + late, 2)} times as late as under gradient flow. Check that the data are standardised as in "
            "the run, or train with a smaller learning rate."
        )
    elif late > _LATE:
        plain = not observed.attrs.get("momentum")
        why = f": weights grow by {100 * growth:.0f} % in one step, so" if plain else " for this momentum, so"
        yield (
            f"The learning rate is large{why} jumps occur about {100 * late:.0f} % later than under gradient flow. "
            "For a stricter comparison, train with a smaller learning rate."
        )


def _with_curve_tolerance(predicted: xr.Dataset, blurred: float) -> xr.Dataset:
    """Add the errors due to noise, finite steps and logging to the tolerance of the predicted loss."""
    usual, why = (predicted.attrs[f"{names.CURVE}_tolerance{end}"] for end in ("", "_reason"))
    if not blurred >= 1e-3:  # also NaN, for a run that ends before the compared range
        return predicted
    reason = f"{why}; plus {100 * blurred:.2g} % for noise, finite steps and sparse logging of this curve"
    return predicted.assign_attrs(
        {f"{names.CURVE}_tolerance": usual + blurred, f"{names.CURVE}_tolerance_reason": reason}
    )


def _with_levels_to_judge(predicted: xr.Dataset, found: np.ndarray) -> xr.Dataset:
    """Exclude the levels of plateaus whose end the run does not show, by making their settling times infinite."""
    staircase = StaircaseView(predicted)
    settling = np.zeros(len(found)) if staircase.settling_times is None else staircase.settling_times.copy()
    settling[:-1][np.isnan(found[1:])] = np.inf
    settling[-1:] = np.maximum(settling[-1:], _SETTLED * found[-1:]) if staircase.complete else np.inf
    return predicted.assign({names.SETTLING_TIME: ("jump", settling)})


def _named(conventions: list[LossName]) -> str:
    return " or ".join(f"loss={name!r} ({LOSSES[name].formula})" for name in conventions)

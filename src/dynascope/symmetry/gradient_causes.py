"""Tests why gradients lack a symmetry, by fits of their slopes along the symmetry and by tests for noise."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dynascope.symmetry.charge import Charge
from dynascope.symmetry.evidence import Cause, Evidence

__all__ = ["gradient_causes"]

_FITS = 1e-2  # largest relative residual of a fit that counts
_RIVAL = 3  # a fit is reported alone if the residual of every other fit is this many times larger
_STILL = 1e-6  # slopes of a part smaller than this, relative to the largest part, count as zero
_FEWEST = 10  # numbers needed to estimate a factor
_EQUATIONS = 3  # charges needed to estimate one factor per step
_UNEQUAL = 0.1  # smallest deviation of a factor from one that counts
_DEVIATIONS = 3  # a mean within this many standard errors counts as zero
_TYPICAL = 2**-6  # typical rounding error relative to its bound if the errors are independent

_FORMATS = {8: "bfloat16", 11: "float16"}
_BITS = 11  # bits of float16 and TF32, the widest formats that count as lower precision
_NAMES = (
    "wrong backward pass",
    "elementwise operation inside",
    "L2 penalty in the loss",
    "L1 penalty in the loss",
    "gradients not zeroed",
    "norm: its ε, statistics or backward pass",
    "lower precision",
    "dropout",
)


class _Slopes(NamedTuple):
    """The slopes of a symmetry, shape (steps, charges).

    Attributes:
        sums: Σ_A θ_AᵀGg, zero if the gradient has the symmetry.
        rounding: Bound on the rounding error of `sums`.
    """

    sums: np.ndarray
    rounding: np.ndarray


class _Fit(NamedTuple):
    """An explanation of the slopes: its name, its relative residual, the evidence and the affected parameters."""

    name: str
    left: float
    evidence: str
    paths: tuple[str, ...]


def gradient_causes(evidence: Evidence, number: int) -> list[Cause]:
    """Return the possible reasons why the gradient lacks a symmetry, each with the result of its test.

    If the gradient has a symmetry, its slopes along the parts of the symmetry sum to zero. If the slopes do not sum to
    zero, four explanations are fitted:

    - a separate factor for each part (a wrong backward pass);
    - Σ μ_A θ_AᵀGθ_A (an L2 penalty);
    - Σ μ_A θ_AᵀG sign θ_A (an L1 penalty);
    - κ times the slopes of the previous step's gradient (gradients that accumulate).

    A fit is accepted if its residual is less than a hundredth of the sums, or within rounding errors. Of the last three
    explanations, the best fit is reported, together with fits whose residual is less than three times as large. Sums
    that no fit explains are treated as noise if two means are within three standard errors of zero: their mean over the
    steps, and the mean of the products of successive steps. Noise as small as rounding errors in lower precision is
    attributed to lower precision. Noise in shifts, and off the diagonal of matrices, is attributed to dropout, because
    dropout masks preserve rescalings. If every entry of a gradient fits into 8 or 11 bits, the cause is lower
    precision, e.g. autocast.

    Args:
        evidence: The recorded statistics.
        number: Index of the symmetry.
    """
    charge, rows = evidence.symmetries[number], evidence.rows(number)
    count = len(charge.parts)
    sums = evidence.part_slope[:, rows, :count].sum(2)
    slopes = _Slopes(sums, evidence.part_slope_rounding[:, rows, :count].sum(2))
    times = np.abs(sums).sum(0) / np.maximum(slopes.rounding.sum(0), np.finfo(float).tiny)
    if times.max(initial=0.0) <= 1:
        text = f"the gradient has the symmetry, to within {times.max(initial=0.0):.1e} times the rounding bound"
        return [Cause(name, False, text) for name in _NAMES]
    backward = _backward(evidence, number)
    inside = _inside(charge, times)
    fits = [
        _penalty("L2 penalty in the loss", "charge", charge, slopes, evidence.part_charge[:, rows, :count]),
        _penalty("L1 penalty in the loss", "L1 norm", charge, slopes, evidence.part_absolute[:, rows, :count]),
        _stale(charge, slopes, evidence.part_stale[:, rows, :count].sum(2)),
    ]
    fitted = _compared(fits, slopes)
    norm = _norm(charge, sums, (backward, inside, *fitted))
    explained = any(each.supported for each in (backward, *fitted, norm))
    return [backward, inside, *fitted, norm, *_noise(evidence, charge, slopes, inside, explained=explained)]


def _backward(evidence: Evidence, number: int) -> Cause:
    """Test whether Σ α_A x_A is zero for factors other than one.

    The gradient of part A is then 1/α_A times the correct one.
    """
    name, charge = "wrong backward pass", evidence.symmetries[number]
    shares, left = _shares(evidence, number)
    if shares is None:
        text = (
            "no factors make the slopes of the parts cancel"
            if left
            else "not testable: fewer than two parts have slopes"
        )
        return Cause(name, False, f"{text}: the relative residual is {left:.1e}" if left else text)
    if max(abs(share - 1) for share in shares.values()) < _UNEQUAL:
        return Cause(name, False, "the factors that make the slopes cancel are equal to within ten percent")
    factors = _factors(evidence)
    wrong = {path: factors[path] for path in charge.paths if abs(factors.get(path, 1.0) - 1) > _UNEQUAL}
    wrong = wrong or shares
    text = "; ".join(
        f"{path}: its gradient is {share:.4g} times the value that later gradients imply"
        for path, share in wrong.items()
    )
    return Cause(name, True, f"{text}, with relative residual {left:.1e}", tuple(wrong))


def _factors(evidence: Evidence) -> dict[str, float]:
    """Estimate the error factor of each gradient, starting from the last parameters; omit those without an estimate."""
    known: dict[str, float] = {}
    for number in reversed(range(len(evidence.symmetries))):
        shares, _ = _shares(evidence, number)
        if shares is not None:
            paths = [path for path in reversed(shares) if path in known] or list(reversed(shares))
            anchor = known.setdefault(paths[0], 1.0) / shares[paths[0]]
            for path, share in shares.items():
                known.setdefault(path, anchor * share)
    return known


def _shares(evidence: Evidence, number: int) -> tuple[dict[str, float] | None, float]:
    """Estimate the factors of the gradients of all parts relative to the last part, and the relative residual.

    The factors are None if no factors explain the slopes.
    """
    charge = evidence.symmetries[number]
    columns = evidence.part_slope[:, evidence.rows(number), : len(charge.parts)].reshape(-1, len(charge.parts))
    lengths = np.linalg.norm(columns, axis=0)
    moved = np.flatnonzero(lengths > _STILL * lengths.max(initial=0.0))
    if len(moved) < 2 or len(columns) < _FEWEST or charge.kind == "translation":
        return None, 0.0
    _, values, right = np.linalg.svd(columns[:, moved] / lengths[moved], full_matrices=False)
    left = float(values[-1] / values[-2])
    if left > _FITS or not np.all(np.abs(right[-1]) > _FITS):
        return None, left
    # The part that is read last is nearest to the loss, so its gradient went through the fewest backward passes.
    factors = right[-1] / lengths[moved]
    return {
        charge.parts[place].path: float(factors[-1] / each) for place, each in zip(moved, factors, strict=True)
    }, left


def _inside(charge: Charge, times: np.ndarray) -> Cause:
    """Test whether only the off-diagonal charges of a matrix symmetry are broken.

    Elementwise operations preserve the diagonal, because they commute with rescalings of individual units.
    """
    name = "elementwise operation inside"
    if charge.kind != "matrix" or charge.block == 1:
        return Cause(name, False, "not testable: the symmetry is not a matrix symmetry")
    rows, columns = np.triu_indices(charge.block)
    diagonal = np.tile(rows == columns, charge.units // charge.block)
    within, off = times[diagonal].max(), times[~diagonal].max()
    text = f"the laws on the diagonal are violated by {within:.1e}, the others by {off:.1e} times the rounding bound"
    if within <= 1 < off:
        return Cause(name, True, f"{text}, as by dropout or an activation between the layers", charge.paths)
    return Cause(name, False, text)


def _penalty(name: str, what: str, charge: Charge, slopes: _Slopes, own: np.ndarray) -> _Fit:
    """Fit the sums by Σ μ_A x_A, where x_A is the slope that a penalty of unit strength adds to part A."""
    columns = own.reshape(-1, own.shape[2])
    strengths = np.linalg.lstsq(columns, slopes.sums.ravel())[0]
    sizes = np.abs(strengths) * np.linalg.norm(columns, axis=0)
    counted = sizes > _FITS * sizes.max(initial=0.0)
    left = _left(slopes, (columns @ strengths).reshape(slopes.sums.shape))
    strong = [(part.path, float(strengths[place])) for place, part in enumerate(charge.parts) if counted[place]]
    listed = " and ".join(f"{strength:.4g} times the {what} of {path}" for path, strength in strong)
    return _Fit(name, left, f"the slopes sum to {listed or 'zero'}", tuple(dict.fromkeys(path for path, _ in strong)))


def _stale(charge: Charge, slopes: _Slopes, stale: np.ndarray) -> _Fit:
    """Fit the sums by κ times the slopes of the previous gradient, with one κ per step if there are enough charges."""
    axis = 1 if stale.shape[1] >= _EQUATIONS else None
    squares = np.sum(stale**2, axis, keepdims=True)
    shares = np.divide(
        np.sum(stale * slopes.sums, axis, keepdims=True), squares, out=np.zeros_like(squares), where=squares > 0
    )
    share = float(np.median(shares[squares > 0])) if (squares > 0).any() else 0.0
    text = f"the gradient contains {share:.4g} times the gradient of the previous step"
    return _Fit("gradients not zeroed", _left(slopes, shares * stale), text, charge.paths)


def _left(slopes: _Slopes, fit: np.ndarray) -> float:
    """Return the relative residual of a fit of the sums, limited so that a residual within rounding is accepted."""
    rest = slopes.sums - fit
    left = float(np.linalg.norm(rest) / np.linalg.norm(slopes.sums))
    return min(left, _FITS / _RIVAL) if (np.abs(rest) <= slopes.rounding).all() else left


def _compared(fits: list[_Fit], slopes: _Slopes) -> list[Cause]:
    """Convert fits to causes; if the best fit is accepted, it and fits with a similar residual are supported."""
    best = min(each.left for each in fits)
    good = [each.left < _FITS and each.left <= _RIVAL * best for each in fits]
    names = [each.name for each, supported in zip(fits, good, strict=True) if supported]
    return [
        Cause(
            each.name,
            True,
            f"{each.evidence}, with relative residual {each.left:.1e}",
            each.paths,
            _others(names, each.name),
        )
        if supported
        else Cause(each.name, False, f"{each.evidence}, but the relative residual is {each.left:.1e}")
        for each, supported in zip(fits, good, strict=True)
    ]


def _others(names: list[str], name: str) -> tuple[str, ...]:
    return tuple(each for each in names if each != name)


def _norm(charge: Charge, sums: np.ndarray, others: tuple[Cause, ...]) -> Cause:
    name = "norm: its ε, statistics or backward pass"
    if charge.kind != "scale":
        return Cause(name, False, "the symmetry does not rescale weights followed by a normalisation layer")
    if any(each.supported for each in others):
        return Cause(name, False, "another cause explains the slopes")
    return Cause(name, True, f"the slope along the weights is {np.abs(sums).max():.1e} instead of zero", charge.paths)


def _noise(evidence: Evidence, charge: Charge, slopes: _Slopes, inside: Cause, *, explained: bool) -> list[Cause]:
    """Test whether the sums are noise: rounding errors of lower precision, or a mask that is redrawn at each step."""
    rounding, dropout = _NAMES[-2:]
    if explained:
        return [Cause(name, False, "another cause explains the slopes") for name in (rounding, dropout)]
    layers = [evidence.paths.index(path) for path in charge.paths]
    bits = int(evidence.gradient_bits[:, layers].max(0).min())
    relative = np.divide(slopes.sums, slopes.rounding, out=np.zeros_like(slopes.sums), where=slopes.rounding > 0)
    size = float(np.sqrt(np.mean(relative[:, slopes.rounding.any(0)] ** 2)))
    # Compare with rounding in the format of the gradients, or in the widest format that counts as lower precision.
    is_small = size <= _TYPICAL * 2.0 ** -min(bits, _BITS) / evidence.unit
    is_random, text = _randomness(relative)
    # A mask acts elementwise, so it preserves the rescaling of units.
    is_masked = is_random and (charge.kind == "translation" or inside.supported) and not (bits in _FORMATS and is_small)
    is_rounding = bits not in _FORMATS and is_random and is_small
    if charge.kind in ("scale", "rescale"):
        masks = Cause(dropout, False, "elementwise masks preserve rescalings of units")
    elif is_masked:
        drawn = f"{text}, as with masks that are redrawn at each step"
        masks = Cause(dropout, True, drawn, charge.paths, (rounding,) * is_rounding)
    else:
        masks = Cause(dropout, False, f"the slopes are not noise from masks: {text}")
    if bits in _FORMATS:
        held = f"every entry of a gradient fits in the {bits} bits of {_FORMATS[bits]}, as under autocast"
        return [Cause(rounding, True, held, charge.paths), masks]
    if is_rounding:
        small = f"{text}, and the slopes are as small as rounding errors in TF32 or float16"
        return [Cause(rounding, True, small, charge.paths, (dropout,) * is_masked), masks]
    why = "the slopes are too large for rounding errors" if is_random else "the slopes are not noise"
    return [Cause(rounding, False, f"{why}: {text}"), masks]


def _randomness(relative: np.ndarray) -> tuple[bool, str]:
    """Test whether series (steps, charges) have zero mean and uncorrelated successive steps, and report both."""
    moved = relative[:, relative.any(0)]
    if len(moved) < _FEWEST:
        return False, f"fewer than {_FEWEST} recorded steps"
    means = _deviations(moved)
    mean = float(np.sqrt(np.mean(means**2)))
    # Charges of the same step may be correlated, so they are summed before the standard error is computed.
    (correlation,) = _deviations((moved[1:] * moved[:-1]).sum(1, keepdims=True))
    text = f"their mean is {mean:.2g} standard errors, and the mean product of successive steps is {correlation:.2g}"
    return bool(mean <= _DEVIATIONS and abs(correlation) <= _DEVIATIONS), text


def _deviations(series: np.ndarray) -> np.ndarray:
    """Return the means over the steps, in standard errors."""
    errors = series.std(0, ddof=1) / len(series) ** 0.5
    return np.divide(series.mean(0), errors, out=np.full(series.shape[1], np.inf), where=errors > 0)

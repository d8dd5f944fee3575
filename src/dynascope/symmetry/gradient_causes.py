"""Why gradients lack a symmetry: fits of their slopes along it, and tests of what no fit explains."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dynascope.symmetry.charge import Charge
from dynascope.symmetry.evidence import Cause, Evidence

__all__ = ["gradient_causes"]

_FITS = 1e-2  # of what is to be explained, a cause leaves less than this
_RIVAL = 3  # a fit is named alone if every other one leaves this many times more
_STILL = 1e-6  # times the slopes of the part that has most: one with less is taken to be at rest
_FEWEST = 10  # numbers from which a factor is found
_EQUATIONS = 3  # charges from which each step has a factor of its own
_UNEQUAL = 0.1  # what a factor is away from one, to be called another
_DEVIATIONS = 3  # standard errors within which a mean is zero
_TYPICAL = 2**-6  # share of the bound that rounding reaches, where its errors are independent

_FORMATS = {8: "bfloat16", 11: "float16"}
_BITS = 11  # of float16 and TF32, the widest formats that count as lower precision
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
    """The slopes of a symmetry, of the shape (steps, charges).

    Attributes:
        sums: Σ_A θ_AᵀGg, zero if the gradient has the symmetry.
        rounding: What rounding can do to it.
    """

    sums: np.ndarray
    rounding: np.ndarray


class _Fit(NamedTuple):
    """An explanation of slopes: what it leaves, relative; what it is; and the parameters that it names."""

    name: str
    left: float
    evidence: str
    paths: tuple[str, ...]


def gradient_causes(evidence: Evidence, number: int) -> list[Cause]:
    """The causes by which the gradient lacks a symmetry, each with its test.

    The slopes of a symmetry's parts sum to zero if the gradient has it. If they do not, each of these fits has to leave
    less than a hundredth of the sums, or no more than rounding: other factors of the parts (a wrong backward pass);
    Σ μ_A θ_AᵀGθ_A (an L2 penalty); Σ μ_A θ_AᵀG sign θ_A (L1); κ times the slopes of the gradient of the step before
    (gradients that accumulate). Of the last three the one that leaves least is named, with those that leave less
    than three times as much. Sums that no fit explains are noise if neither their mean over the steps nor that of the
    products of successive steps is more than three standard errors from zero. Noise comes of lower precision if it is
    as small as rounding there, and of dropout in shifts and off the diagonal of matrices, as masks keep rescalings.
    Gradients of which every entry fits in 8 or 11 bits are those of autocast.

    Args:
        evidence: What was recorded.
        number: That of the symmetry.
    """
    charge, rows = evidence.symmetries[number], evidence.rows(number)
    count = len(charge.parts)
    sums = evidence.part_slope[:, rows, :count].sum(2)
    slopes = _Slopes(sums, evidence.part_slope_rounding[:, rows, :count].sum(2))
    times = np.abs(sums).sum(0) / np.maximum(slopes.rounding.sum(0), np.finfo(float).tiny)
    if times.max(initial=0.0) <= 1:
        said = f"the gradient keeps the symmetry, to {times.max(initial=0.0):.1e} of rounding"
        return [Cause(name, False, said) for name in _NAMES]
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
    """Whether Σ α_A x_A is zero for other factors than one: the gradient of A is 1/α_A of what it should be."""
    name, charge = "wrong backward pass", evidence.symmetries[number]
    shares, left = _shares(evidence, number)
    if shares is None:
        said = "no factors of the parts make the slopes vanish" if left else "not testable: one part alone has a slope"
        return Cause(name, False, f"{said}: {left:.1e} is left" if left else said)
    if max(abs(share - 1) for share in shares.values()) < _UNEQUAL:
        return Cause(name, False, "the slopes vanish with equal factors, but for less than a tenth")
    factors = _factors(evidence)
    wrong = {path: factors[path] for path in charge.paths if abs(factors.get(path, 1.0) - 1) > _UNEQUAL}
    wrong = wrong or shares
    said = "; ".join(
        f"{path}: its gradient is {share:.4g} times what those behind it say" for path, share in wrong.items()
    )
    return Cause(name, True, f"{said}, to {left:.1e}", tuple(wrong))


def _factors(evidence: Evidence) -> dict[str, float]:
    """By which factor each gradient is off, from the last parameters on; those that nothing tells are left out."""
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
    """By which factors the gradients of parts are off against that of the last, if any explain the slopes; and how."""
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
    # What is read last is nearest to the loss, and its gradient passed fewest backward passes.
    factors = right[-1] / lengths[moved]
    return {
        charge.parts[place].path: float(factors[-1] / each) for place, each in zip(moved, factors, strict=True)
    }, left


def _inside(charge: Charge, times: np.ndarray) -> Cause:
    """Whether charges of a matrix break off the diagonal only, as rescaling each unit keeps what acts on each alone."""
    name = "elementwise operation inside"
    if charge.kind != "matrix" or charge.block == 1:
        return Cause(name, False, "not testable: the charges are no matrices")
    rows, columns = np.triu_indices(charge.block)
    diagonal = np.tile(rows == columns, charge.units // charge.block)
    within, off = times[diagonal].max(), times[~diagonal].max()
    said = f"the gradient breaks the diagonal of the charges by {within:.1e} and the rest by {off:.1e} of rounding"
    if within <= 1 < off:
        return Cause(name, True, f"{said}, as dropout or an activation between the layers does", charge.paths)
    return Cause(name, False, said)


def _penalty(name: str, what: str, charge: Charge, slopes: _Slopes, own: np.ndarray) -> _Fit:
    """The sums as Σ μ_A x_A, of what a penalty of each part adds to its slope for each unit of strength."""
    columns = own.reshape(-1, own.shape[2])
    strengths = np.linalg.lstsq(columns, slopes.sums.ravel())[0]
    sizes = np.abs(strengths) * np.linalg.norm(columns, axis=0)
    counted = sizes > _FITS * sizes.max(initial=0.0)
    left = _left(slopes, (columns @ strengths).reshape(slopes.sums.shape))
    told = [(part.path, float(strengths[place])) for place, part in enumerate(charge.parts) if counted[place]]
    listed = " and ".join(f"{strength:.4g} times the {what} of {path}" for path, strength in told)
    return _Fit(name, left, f"the slopes sum to {listed or 'nothing'}", tuple(dict.fromkeys(path for path, _ in told)))


def _stale(charge: Charge, slopes: _Slopes, stale: np.ndarray) -> _Fit:
    """The sums as κ times what the gradient of the step before gives, κ of each step where it has enough charges."""
    axis = 1 if stale.shape[1] >= _EQUATIONS else None
    squares = np.sum(stale**2, axis, keepdims=True)
    shares = np.divide(
        np.sum(stale * slopes.sums, axis, keepdims=True), squares, out=np.zeros_like(squares), where=squares > 0
    )
    share = float(np.median(shares[squares > 0])) if (squares > 0).any() else 0.0
    said = f"the gradient still holds {share:.4g} times that of the step before"
    return _Fit("gradients not zeroed", _left(slopes, shares * stale), said, charge.paths)


def _left(slopes: _Slopes, fit: np.ndarray) -> float:
    """What a fit of the sums leaves, relative; no more than rounding counts as a fit."""
    rest = slopes.sums - fit
    left = float(np.linalg.norm(rest) / np.linalg.norm(slopes.sums))
    return min(left, _FITS / _RIVAL) if (np.abs(rest) <= slopes.rounding).all() else left


def _compared(fits: list[_Fit], slopes: _Slopes) -> list[Cause]:
    """The fits as causes: supported are the best, if it is one, and those that do not leave much more."""
    best = min(each.left for each in fits)
    good = [each.left < _FITS and each.left <= _RIVAL * best for each in fits]
    names = [each.name for each, supported in zip(fits, good, strict=True) if supported]
    return [
        Cause(each.name, True, f"{each.evidence}, but for {each.left:.1e}", each.paths, _others(names, each.name))
        if supported
        else Cause(each.name, False, f"{each.evidence}, and {each.left:.1e} is left")
        for each, supported in zip(fits, good, strict=True)
    ]


def _others(names: list[str], name: str) -> tuple[str, ...]:
    return tuple(each for each in names if each != name)


def _norm(charge: Charge, sums: np.ndarray, others: tuple[Cause, ...]) -> Cause:
    name = "norm: its ε, statistics or backward pass"
    if charge.kind != "scale":
        return Cause(name, False, "the symmetry is not the scale of weights before a norm")
    if any(each.supported for each in others):
        return Cause(name, False, "another cause explains the slopes")
    return Cause(name, True, f"the slope along the weights is {np.abs(sums).max():.1e} and not zero", charge.paths)


def _noise(evidence: Evidence, charge: Charge, slopes: _Slopes, inside: Cause, *, explained: bool) -> list[Cause]:
    """Whether the sums are noise: of rounding in lower precision, or of a mask that is drawn at each step."""
    rounding, dropout = _NAMES[-2:]
    if explained:
        return [Cause(name, False, "another cause explains the slopes") for name in (rounding, dropout)]
    layers = [evidence.paths.index(path) for path in charge.paths]
    bits = int(evidence.gradient_bits[:, layers].max(0).min())
    relative = np.divide(slopes.sums, slopes.rounding, out=np.zeros_like(slopes.sums), where=slopes.rounding > 0)
    size = float(np.sqrt(np.mean(relative[:, slopes.rounding.any(0)] ** 2)))
    # Rounding of the gradients' own format, or of the widest that counts as lower precision.
    is_small = size <= _TYPICAL * 2.0 ** -min(bits, _BITS) / evidence.unit
    is_random, said = _randomness(relative)
    # A mask multiplies each value by itself, which rescaling of units does not see.
    is_masked = is_random and (charge.kind == "translation" or inside.supported) and not (bits in _FORMATS and is_small)
    is_rounding = bits not in _FORMATS and is_random and is_small
    if charge.kind in ("scale", "rescale"):
        masks = Cause(dropout, False, "masks of single values keep what rescales units")
    elif is_masked:
        drawn = f"{said}, as of masks that are drawn at each step"
        masks = Cause(dropout, True, drawn, charge.paths, (rounding,) * is_rounding)
    else:
        masks = Cause(dropout, False, f"the slopes are not those of masks: {said}")
    if bits in _FORMATS:
        held = f"every entry of a gradient fits in the {bits} bits of {_FORMATS[bits]}, as under autocast"
        return [Cause(rounding, True, held, charge.paths), masks]
    if is_rounding:
        small = f"{said}, and they are as small as rounding in TF32 or float16"
        return [Cause(rounding, True, small, charge.paths, (dropout,) * is_masked), masks]
    why = "the slopes are too large for rounding" if is_random else "the slopes are no noise"
    return [Cause(rounding, False, f"{why}: {said}"), masks]


def _randomness(relative: np.ndarray) -> tuple[bool, str]:
    """Whether series (steps, charges) have zero mean and no correlation of successive steps, and what shows it."""
    moved = relative[:, relative.any(0)]
    if len(moved) < _FEWEST:
        return False, f"fewer than {_FEWEST} recorded steps"
    means = _deviations(moved)
    mean = float(np.sqrt(np.mean(means**2)))
    # Charges of one step may be correlated: they are summed before the error is taken.
    (correlation,) = _deviations((moved[1:] * moved[:-1]).sum(1, keepdims=True))
    said = f"their mean is {mean:.2g} standard errors, and that of products of successive steps is {correlation:.2g}"
    return bool(mean <= _DEVIATIONS and abs(correlation) <= _DEVIATIONS), said


def _deviations(series: np.ndarray) -> np.ndarray:
    """The means over the steps, in standard errors."""
    errors = series.std(0, ddof=1) / len(series) ** 0.5
    return np.divide(series.mean(0), errors, out=np.full(series.shape[1], np.inf), where=errors > 0)

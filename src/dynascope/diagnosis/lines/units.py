"""Lines on units that do not contribute: dead, duplicate and vanishing units."""

from __future__ import annotations

import numpy as np
import xarray as xr

from dynascope.diagnosis.line import Line
from dynascope.diagnosis.run_facts import RunFacts
from dynascope.results.numbers import percent, rounded

__all__ = ["dead_units", "duplicate_units", "vanishing_units"]

# In MLPs and CNNs of 32 to 128 units per layer, ordinary learning rates left at most 13 % of a layer dead, and most
# learning rates that damaged the network killed at least 27 %.
_DEAD = 0.2
# Without weight decay, at most 2 % of the units of these networks became parallel to another unit or vanished.
_GROWN = 0.1
_EXPLODED = 10  # growth of a norm above which small relative weights do not mean vanished weights
_COPIES = 0.1  # share of units that have the same initial weights as another unit

_DYING = (
    "A ReLU unit that is inactive on all examples has no gradient. Domain: ReLU; units of smooth or leaky activations "
    "still pass a small gradient. Source: Lu et al., arXiv:1903.06733."
)
_INVARIANT = (
    "Sets of identical or zero units are invariant under SGD, and gradient noise can attract the weights to them "
    "(Chen et al., arXiv:2306.04251). Small initial weights align units in a few directions (Luo et al., "
    "arXiv:2007.07497). Domain: layers of interchangeable units."
)


def dead_units(run: RunFacts) -> Line:
    """Report whether a layer has dead units, which are active on no reference example, and when they died."""
    topic = "dead units"
    dead = run.known("dead_fraction")
    if dead is None:
        return Line(
            topic,
            "not measured",
            'Dead units were not measured: record the probe "activity" of a model with activation functions, such as '
            "ReLU.",
            theory=_DYING,
            weight=0,
        )
    place = int(np.nanargmax(dead[-1].to_numpy()))
    shares = dead[:, place].to_numpy()
    name = f"the activation {str(dead['activation'].to_numpy()[place])!r}"
    first, last = float(shares[0]), float(shares[-1])
    if last < _DEAD:
        most = f"At most {percent(last, 2)} of the units of a layer are dead, i.e." if last else "No unit is dead:"
        active = "active on no reference example" if last else "each is active on at least one reference example"
        sentence = f"{most} {active} (threshold {percent(_DEAD)})."
        return Line(topic, "no dead units", sentence, last, _DEAD, _DYING, weight=0)
    size = f"{percent(last, 2)} of the units" if last < 1 else "all units"
    sentence = f"In {name}, {size} are dead, i.e. active on no reference example (threshold {percent(_DEAD)})"
    if first >= last / 2:
        sentence += f"; {percent(first, 2)} were dead in the first row."
        action = "Use larger initial weights or larger biases, or standardise the inputs."
    else:
        half = int(dead["step"].to_numpy()[shares >= (first + last) / 2][0])
        sentence += f". Most of them died during training, half of them by step {half}."
        action = "Lower the learning rate or add a warm-up; a leaky activation or a normalisation layer also helps."
    if last == 1:
        sentence += " No gradient reaches the layers before them."
    return Line(topic, "dead units", sentence, last, _DEAD, _DYING, action, weight=3)


def duplicate_units(run: RunFacts) -> Line:
    """Report whether units became parallel to other units, or have been copies of each other from the start."""
    topic = "duplicate units"
    shares = run.known("duplicate_fraction")
    if shares is None:
        return Line(
            topic,
            "not measured",
            'Duplicate units were not measured: record the probe "duplicates".',
            theory=_INVARIANT,
            weight=0,
        )
    last, names = shares[-1].to_numpy(), [str(each) for each in shares["matrix"].to_numpy()]
    copied = np.array([_copied_share(run.initial_weights.get(name)) for name in names])
    lasting = np.where(copied >= _COPIES, np.nan_to_num(last), 0.0)
    if lasting.max() >= _GROWN:
        place = int(lasting.argmax())
        sentence = (
            f"In {names[place]!r}, {percent(copied[place], 2)} of the units had the same initial weights as another "
            f"unit, and {percent(last[place], 2)} are still parallel to one (threshold {percent(_GROWN)})."
        )
        action = "Draw different initial weights for each unit: identical units receive identical gradients."
        return Line(topic, "duplicate units", sentence, float(last[place]), _GROWN, _INVARIANT, action, weight=3)
    place, growth = _most_grown(shares)
    first = float(shares[0, place])
    if growth < _GROWN:
        sentence = f"{_hardly(growth)} that are parallel to another unit (threshold {percent(_GROWN)})."
        return Line(topic, "no duplicate units", sentence, growth, _GROWN, _INVARIANT, weight=0)
    sentence = (
        f"In {names[place]!r}, {percent(last[place], 2)} of the units are parallel to another unit, against "
        f"{percent(first, 2)} in the first row (threshold: a growth by {percent(_GROWN)})."
    )
    action = "Reduce the width, or use larger initial weights or less weight decay if the network should use all units."
    return Line(topic, "duplicate units", sentence, growth, _GROWN, _INVARIANT, action, weight=2)


def vanishing_units(run: RunFacts) -> Line:
    """Report whether the incoming weights of units vanished relative to those of the largest unit."""
    topic = "vanishing units"
    shares = run.known("vanishing_fraction")
    if shares is None:
        return Line(
            topic,
            "not measured",
            'Vanishing units were not measured: record the probe "balance".',
            theory=_INVARIANT,
            weight=0,
        )
    place, growth = _most_grown(shares)
    if growth < _GROWN:
        sentence = (
            f"{_hardly(growth)} whose incoming weights are below 1\N{NO-BREAK SPACE}% of the largest "
            f"(threshold {percent(_GROWN)})."
        )
        return Line(topic, "no vanishing units", sentence, growth, _GROWN, _INVARIANT, weight=0)
    name = str(shares["matrix"].to_numpy()[place])
    sentence = (
        f"In {name!r}, {percent(shares[-1, place], 2)} of the units have incoming weights below "
        f"1\N{NO-BREAK SPACE}% of the largest, against {percent(shares[0, place], 2)} in the first row (threshold: a "
        f"growth by {percent(_GROWN)})."
    )
    factor = _norm_factor(run, name)
    if factor > _EXPLODED:
        sentence += f" The norm of all its weights grew by the factor {rounded(factor, 2)}, so a few units dominate."
        action = "If the loss jumped, lower the learning rate; otherwise use larger initial weights, or fewer units."
        return Line(topic, "few large units", sentence, growth, _GROWN, _INVARIANT, action, weight=2)
    action = "Prune these units, or use less weight decay or smaller steps if the network should use them."
    return Line(topic, "vanishing units", sentence, growth, _GROWN, _INVARIANT, action, weight=2)


def _most_grown(shares: xr.DataArray) -> tuple[int, float]:
    """Return the matrix whose share grew most since the first row, because few inputs make units alike by chance."""
    growth = np.nan_to_num((shares[-1] - shares[0]).to_numpy().astype(float), nan=-np.inf)
    place = int(growth.argmax())
    return place, float(growth[place]) if np.isfinite(growth[place]) else 0.0


def _hardly(growth: float) -> str:
    return f"No weight matrix gained {f'more than {percent(growth, 2)} of ' if growth > 0 else ''}units"


def _norm_factor(run: RunFacts, name: str) -> float:
    """Return the factor by which the norm of a parameter grew; NaN if unknown."""
    norms = run.known("weight_norm")
    if norms is None or name not in norms["parameter"].to_numpy():
        return float("nan")
    first, last = (float(norms[k].sel(parameter=name)) for k in (0, -1))
    return last / first if first > 0 else float("inf")


def _copied_share(weights: np.ndarray | None) -> float:
    """Return the share of units with the same nonzero initial weights as another unit.

    Units are rows in PyTorch, and often columns in JAX.
    """
    if weights is None or min(weights.shape[0], weights.size // weights.shape[0]) < 2:
        return 0.0
    views = [weights.reshape(weights.shape[0], -1), *([weights.T] if weights.ndim == 2 else [])]
    return max(_repeated(each) for each in views)


def _repeated(rows: np.ndarray) -> float:
    rows = rows[np.any(rows != 0, axis=1)]
    if not len(rows):
        return 0.0
    _, counts = np.unique(rows, axis=0, return_counts=True)
    return float(counts[counts > 1].sum() / len(rows))

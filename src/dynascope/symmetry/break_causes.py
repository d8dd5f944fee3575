"""Tests the possible causes of a broken conservation law on the quantities recorded at each step."""

from __future__ import annotations

from dynascope.symmetry.evidence import Cause, Evidence
from dynascope.symmetry.gradient_causes import gradient_causes
from dynascope.symmetry.step_rules import StepRule

__all__ = ["causes_of"]

_OF_STEPS = (
    "frozen layer",
    "different momentum rule",
    "different weight decay",
    "clipping by tensor",
    "different learning rate",
    "gradient multiplied",
    "clipping by value",
    "different momentum",
    "undeclared L1 decay",
    "preconditioner or another rule",
)


def causes_of(evidence: Evidence, number: int) -> tuple[Cause, ...]:
    """Return all tested causes of the broken law of a symmetry, supported causes first.

    Args:
        evidence: The recorded statistics.
        number: Index of the symmetry.
    """
    charge = evidence.symmetries[number]
    rules = {path: evidence.rule(path) for path in charge.paths}
    found = [_of_steps(name, rules) for name in _OF_STEPS]
    gradients = gradient_causes(evidence, number)
    # A frozen layer also explains a missing gradient. Other causes in the updates are sorted by their number of
    # parameters.
    updates = sorted(found[1:], key=lambda each: -len(each.paths))
    every = [_between(evidence, charge.paths), found[0], *gradients, *updates]
    return tuple(sorted(every, key=lambda each: not each.supported))


def _between(evidence: Evidence, paths: tuple[str, ...]) -> Cause:
    """Test whether anything other than the optimiser changed the weights."""
    name = "weights changed between steps"
    if evidence.changed_between is None:
        return Cause(name, False, "not testable: changes between steps were not recorded")
    counts = {path: int(evidence.changed_between[:, evidence.paths.index(path)].sum()) for path in paths}
    own = tuple(path for path, count in counts.items() if count)
    if not own:
        return Cause(name, False, "the weights did not change between steps")
    changes = "; ".join(
        f"{path}: before {counts[path]} of {len(evidence.changed_between)} recorded steps" for path in own
    )
    return Cause(name, True, changes, own)


def _of_steps(name: str, rules: dict[str, StepRule]) -> Cause:
    own = {path: rule for path, rule in rules.items() if rule.name == name}
    if own:
        text = "; ".join(f"{path}: {rule.evidence}" for path, rule in own.items())
        shared = set.intersection(*(set(rule.rivals) for rule in own.values()))
        return Cause(name, True, text, tuple(own), tuple(sorted(shared)))
    if all(rule.name == "as declared" for rule in rules.values()):
        worst = max(rule.times for rule in rules.values())
        return Cause(
            name, False, f"the updates follow from the gradients, to within {worst:.1e} times the rounding bound"
        )
    return Cause(name, False, "no parameter's updates match it")

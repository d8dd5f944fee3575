"""Why a conservation law is broken: tests of the numbers that each step leaves for each part of a symmetry."""

from __future__ import annotations

from dynascope.symmetry.evidence import Cause, Evidence
from dynascope.symmetry.gradient_causes import gradient_causes
from dynascope.symmetry.step_rules import StepRule

__all__ = ["causes_of"]

_OF_STEPS = (
    "frozen layer",
    "another rule of momentum",
    "weight decay of its own",
    "clipping by tensor",
    "another learning rate",
    "gradient multiplied",
    "clipping by value",
    "another momentum",
    "L1 decay of its own",
    "preconditioner or another rule",
)


def causes_of(evidence: Evidence, number: int) -> tuple[Cause, ...]:
    """The causes of what broke the law of a symmetry, those that a test speaks for first.

    Args:
        evidence: What was recorded.
        number: That of the symmetry.
    """
    charge = evidence.symmetries[number]
    rules = {path: evidence.rule(path) for path in charge.paths}
    found = [_of_steps(name, rules) for name in _OF_STEPS]
    gradients = gradient_causes(evidence, number)
    # A layer at rest explains what its gradient lacks. Of the causes in the updates, the one of most parameters counts.
    updates = sorted(found[1:], key=lambda each: -len(each.paths))
    every = [_between(evidence, charge.paths), found[0], *gradients, *updates]
    return tuple(sorted(every, key=lambda each: not each.supported))


def _between(evidence: Evidence, paths: tuple[str, ...]) -> Cause:
    """Whether something else than the optimiser changed weights."""
    name = "weights changed between steps"
    if evidence.changed_between is None:
        return Cause(name, False, "not testable: nobody looked between steps")
    counts = {path: int(evidence.changed_between[:, evidence.paths.index(path)].sum()) for path in paths}
    own = tuple(path for path, count in counts.items() if count)
    if not own:
        return Cause(name, False, "weights were at each step what the step before had left")
    told = "; ".join(f"{path}: before {counts[path]} of {len(evidence.changed_between)} recorded steps" for path in own)
    return Cause(name, True, told, own)


def _of_steps(name: str, rules: dict[str, StepRule]) -> Cause:
    own = {path: rule for path, rule in rules.items() if rule.name == name}
    if own:
        said = "; ".join(f"{path}: {rule.evidence}" for path, rule in own.items())
        shared = set.intersection(*(set(rule.rivals) for rule in own.values()))
        return Cause(name, True, said, tuple(own), tuple(sorted(shared)))
    if all(rule.name == "as declared" for rule in rules.values()):
        worst = max(rule.times for rule in rules.values())
        return Cause(name, False, f"the updates follow from the gradients, to {worst:.1e} of rounding")
    return Cause(name, False, "no parameter has updates that look like it")

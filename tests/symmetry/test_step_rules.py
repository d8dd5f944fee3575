from __future__ import annotations

import numpy as np
import pytest

from dynascope.symmetry.step_rules import DEPARTURES, step_rule

STEPS, UNITS, ENTRIES, RATE, MOMENTUM, DECAY = 40, 6, 5, 0.05, 0.8, 0.02
EPS = 2.0**-53
OF_HYPOTHESES = np.zeros((3, 3)), np.zeros((3, len(DEPARTURES))), np.zeros((3, len(DEPARTURES)))


def fitted(one, other):
    factor = (one * other).sum() / max((other**2).sum(), 1e-300)
    rest = np.abs(one - factor * other).max()
    return factor, max(rest - 1e3 * EPS, 0)


def trained(
    used,
    *,
    decay=DECAY,
    momentum=MOMENTUM,
    frozen=False,
    rule="heavy_ball",
    rate=lambda step: 1.0,
    declared_decay=DECAY,
):
    """A layer whose gradients are noise, trained in NumPy, and what the declared heavy ball says of its steps."""
    draw = np.random.default_rng(0)
    weights, buffer = draw.normal(size=(UNITS, ENTRIES)), np.zeros((UNITS, ENTRIES))
    rows, crossed, held, looking, plain, intended = [], np.zeros(UNITS), 0.0, 0.0, 0.0, 0.0
    second = np.zeros_like(buffer)
    for step in range(STEPS):
        gradient = draw.normal(size=weights.shape) * draw.uniform(0.1, 1)
        second = 0.9 * second + 0.1 * gradient**2
        push = used(gradient, second, step) + (0 if rule == "decoupled" else decay) * weights
        buffer = momentum * buffer + push
        step_made = {"nesterov": push + momentum * buffer, "decoupled": buffer + decay * weights}.get(rule, buffer)
        update = np.zeros_like(buffer) if frozen else -RATE * rate(step) * step_made
        intended = MOMENTUM * intended + gradient + declared_decay * weights
        along = -(weights * update).sum(1) / RATE
        charge = (weights**2).sum(1)
        implied = -update / RATE - MOMENTUM * held - declared_decay * weights
        # Nesterov's d/η is (1 + β) g + β² v, where v ← β v + g; and decoupled decay is not in the buffer.
        ahead = (-update / RATE - MOMENTUM**2 * looking) / (1 + MOMENTUM)
        apart = (-update / RATE - declared_decay * weights) - MOMENTUM * plain
        looking, plain = MOMENTUM * looking + ahead, -update / RATE - declared_decay * weights
        by_rule = implied - gradient, ahead - declared_decay * weights - gradient, apart - gradient
        departures = {
            "decay": (implied - gradient, weights),
            "rate": (-update / RATE, intended),
            "gradient": (implied, gradient),
            "sign": (implied - gradient, np.sign(weights)),
            "momentum": (implied - gradient, held + np.zeros_like(weights)),
        }
        factors, rests = zip(*(fitted(*departures[name]) for name in DEPARTURES), strict=True)
        held, largest = -update / RATE, np.abs(implied).max()
        rows.append(
            {
                "slope": (weights * gradient).sum(1),
                "pull": along - MOMENTUM * crossed - declared_decay * charge,
                "rounding": 1e3 * EPS * charge,
                "gradient_norm": np.linalg.norm(gradient),
                "gradient_largest": np.abs(gradient).max(),
                "update_norm": np.linalg.norm(update),
                "clipping": np.abs(implied - np.clip(gradient, -largest, largest)).max(),
                "change": np.abs(implied - gradient).max(),
                "change_by_rule": [np.abs(each).max() for each in by_rule],
                "departure_factor": factors,
                "departure_rest": rests,
            }
        )
        crossed = along - (update**2).sum(1) / RATE
        weights = weights + update
    series = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return step_rule(**series)


def shortened(length):
    return lambda gradient, *_: gradient * min(1, length / np.linalg.norm(gradient))


@pytest.mark.parametrize(
    ("used", "options", "name", "said"),
    [
        (lambda g, *_: g, {}, "as declared", ""),
        (lambda g, *_: g, {"decay": DECAY + 0.003}, "different weight decay", "off by +0.003"),
        (lambda g, *_: g, {"decay": 0.0}, "different weight decay", "off by -0.02"),
        (shortened(1.5), {}, "clipping by tensor", "norm 1.5 "),
        (lambda g, *_: 0.5 * g, {}, "gradient multiplied", "by 0.5 "),
        (lambda g, *_: g, {"rate": lambda step: 2.0}, "different learning rate", "are 2 times"),
        (lambda g, *_: g, {"rate": lambda step: 1.1}, "different learning rate", "are 1.1 times"),
        (lambda g, *_: g, {"rate": lambda step: min((step + 1) / 10, 1)}, "different learning rate", "rising"),
        (lambda g, *_: g, {"rate": lambda step: np.cos(step / STEPS)}, "different learning rate", "falling"),
        (lambda g, *_: g, {"rate": lambda step: 1 + step % 2}, "different learning rate", "from 1 to 2"),
        (lambda g, *_: np.clip(g, -0.8, 0.8), {}, "clipping by value", ""),
        (lambda g, *_: np.clip(g, -0.05, 0.05), {}, "clipping by value", "40 of 40"),
        (lambda g, _, step: np.clip(g, -0.05, 0.05) if step > 20 else g, {}, "clipping by value", "19 of 40"),
        (lambda g, *_: g, {"momentum": 0.7}, "different momentum", "off by -0.1"),
        (lambda g, *_: g, {"momentum": 0.0}, "different momentum", "off by -0.8"),
        (lambda g, *_: g, {"rule": "nesterov"}, "different momentum rule", "Nesterov"),
        (lambda g, *_: g, {"rule": "decoupled"}, "different momentum rule", "decoupled"),
        (lambda g, *_: g, {"rule": "nesterov", "momentum": 0.7}, "preconditioner or another rule", "40 of 40"),
        (lambda g, second, _: g / (np.sqrt(second) + 1e-8), {}, "preconditioner or another rule", "40 of 40"),
        (lambda g, *_: g, {"frozen": True}, "frozen layer", "40 of 40"),
        (lambda g, *_: 0 * g, {}, "frozen layer", ""),
    ],
)
def test_the_rule_of_updates_is_told_from_their_slopes(used, options, name, said):
    found = trained(used, **options)
    assert found.name == name
    assert said in found.evidence


def test_without_decay_a_factor_of_the_rate_and_of_the_gradient_are_both_possible():
    found = trained(lambda g, *_: 2 * g, decay=0.0, declared_decay=0.0)
    assert (found.name, found.rivals) == ("different learning rate", ("gradient multiplied",))


def test_a_parameter_without_slopes_says_nothing():
    empty, steps = np.zeros((3, 2)), np.ones(3)
    found = step_rule(empty, empty, empty, steps, steps, steps, 0 * steps, 0 * steps, *OF_HYPOTHESES)
    assert found.name == "as declared"


def test_a_parameter_that_no_gradient_reaches_is_frozen():
    slopes, steps = np.zeros((3, 2)), np.ones(3)
    # Without decay its updates are zero too, and nothing of it is rounded.
    found = step_rule(slopes, slopes, slopes, *(5 * [0 * steps]), *OF_HYPOTHESES)
    assert found.name == "frozen layer"

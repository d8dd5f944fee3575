from __future__ import annotations

import numpy as np

from dynascope.studies.noise.joint_claims import Means, close_to, law_of_samples, repelled


def test_several_means_hold_together_as_often_as_is_said():
    draw = np.random.default_rng(0)
    outside = 0
    for _ in range(400):
        runs = Means.of(draw.normal(size=(5, 8)))
        outside += bool(np.any(np.abs(runs.mean) > runs.half))
    # 95 percent of 400, with a standard deviation of 4.4.
    assert outside <= 20 + 4 * 4.4


def test_the_interval_of_a_distribution_holds_the_truth():
    draw = np.random.default_rng(1)
    missed = 0
    for _ in range(200):
        values = np.sort(draw.random((3, 50)), axis=1)
        ranks = np.arange(51) / 50
        distances = np.maximum(values - ranks[:-1], ranks[1:] - values).max(axis=1)
        missed += law_of_samples("law", "It is uniform.", distances, 50, most=0.5).low > 0
    # 5 percent of 200, with a standard deviation of 3.1.
    assert missed <= 10 + 4 * 3.1


def test_claims_on_means_hold_fail_or_are_left_open():
    def means(*values, error=0.001):
        return Means(np.array(values), np.full(len(values), error), 100)

    told = [
        close_to("near", "They are near.", means(*values), np.array([1.0, 2.0]), most=0.05).outcome
        for values in ((1.0, 2.01), (1.0, 1.9), (1.05, 2.0))
    ]
    assert told == ["holds", "does not hold", "undecided"]
    assert [
        repelled("up", "They grow.", means(*values)).outcome for values in ((0.5, 0.2), (0.5, -0.2), (0.5, 0.001))
    ] == [
        "holds",
        "does not hold",
        "undecided",
    ]

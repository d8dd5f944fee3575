from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.networks import network_for
from dynascope.prediction import over_seeds, predict, predict_seeds
from dynascope.results import Prediction, StaircaseView, make_record
from dynascope.tasks import Task

DRAW = np.random.default_rng(0)
TASK = Task(x := DRAW.normal(size=(30, 3)), x @ np.diag([3.0, 1.0, 0.0])[:, :2], feature_names=("age", "mass", "size"))


def test_seeds_stand_beside_the_first_and_their_losses_span_it():
    found = predict_seeds(TASK, "linear", seeds=3, first=4, scale=1e-3, width=6).record
    alone = [predict(TASK, network_for("linear", TASK, width=6, seed=seed), scale=1e-3).record for seed in (4, 5, 6)]
    assert found["seed"].to_numpy().tolist() == [4, 5, 6]
    np.testing.assert_array_equal(found["jump_time"], alone[0]["jump_time"])
    np.testing.assert_array_equal(found["seed_jump_time"], [each["jump_time"] for each in alone])
    assert float(found["seed_jump_time"].std("seed").max()) > 0
    losses = [each["loss"].interp(time=found["time"][:1000]) for each in alone]
    np.testing.assert_allclose(found["loss_low"][:1000], np.min(losses, axis=0), atol=1e-12)
    np.testing.assert_allclose(found["loss_median"][:1000], np.median(losses, axis=0), atol=1e-12)
    np.testing.assert_allclose(found["loss_high"][:1000], np.max(losses, axis=0), atol=1e-12)


def of_seeds(monkeypatch, *directions, times):
    """What is told of seeds that predict these."""
    records = [
        make_record(
            {
                "jump_time": (["jump"], when),
                "loss_before": (["jump"], [1.0, 0.5][: len(when)]),
                "loss_after": (["jump"], [0.5, 0.0][: len(when)]),
                "learned": (["jump"], np.array([f"along {row}" for row in own])),
                "learned_direction": (["jump", "feature"], own),
            },
            {"jump": np.arange(1, len(when) + 1), "feature": list(TASK.feature_names)},
        )
        for own, when in zip(directions, times, strict=True)
    ]
    monkeypatch.setattr(over_seeds, "predict", lambda *_, **__: Prediction.of(records.pop(0)))
    return StaircaseView(predict_seeds(TASK, "relu", seeds=len(directions), scale=0.1).record).over_seeds


def test_each_jump_is_counted_by_its_largest_input_and_a_missing_one_is_not(monkeypatch):
    age, mass, size = np.eye(3)
    first, second = of_seeds(
        monkeypatch,
        [0.8 * age - 0.6 * mass, size],
        [0.6 * age - 0.8 * mass, size],
        [age],
        times=([1.0, 2.0], [1.5, 4.0], [1.2]),
    )
    assert first.learned == {"age": 2, "mass": 1}
    assert (first.seen, first.median, first.earliest, first.latest) == (3, 1.2, 1.0, 1.5)
    # Those that have it say the same words.
    assert second.learned == {f"along {size}": 2}
    assert (second.seen, second.median) == (2, 3.0)


def test_what_is_not_drawn_has_no_seeds():
    with pytest.raises(InputError, match="diagonal network are not random"):
        predict_seeds(TASK, "diagonal", seeds=2, scale=0.1)

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.grokking.grokking_diagonal.study import GrokkingDiagonal
from dynascope.theory.grokking import late_curve


def drawn(seed: int, **sizes: int):
    draw = np.random.default_rng(seed)
    return GrokkingDiagonal(
        scales=[float(each) for each in np.sort(draw.uniform(0.8, 3.0, 3))],
        weight_decay=float(draw.uniform(0.002, 0.01)),
        threshold=float(draw.uniform(0.05, 0.2)),
        seed=seed,
        **GrokkingDiagonal.tiny | sizes,
    )


def largest_errors(study) -> tuple[float, float]:
    """Of the test error at all times after the fit, absolute, and of the grokking time, relative."""
    tree = study.run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    observed, predicted = tree.observed, tree.predicted
    # After the predicted fitting time, the trained network has indeed fitted:
    fitted = observed["loss"].sel(time=predicted["time"]) / observed["loss"].isel(time=0)
    # 1e-4 plus the loss that the lag keeps up.
    assert float(fitted.max()) < 1e-3
    return (
        float(abs(tree.residual["test_error_residual"]).max()),
        float(abs(observed["grokking_time"] / predicted["grokking_time"] - 1).max()),
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_grokking_matches_theory_for_random_data(seed):
    curve, time = largest_errors(drawn(seed))
    assert curve < 0.02
    assert time < 0.03


@pytest.mark.slow
def test_the_predicted_curve_holds_once_the_network_has_fitted():
    study = drawn(1)
    observed = study.observe().record
    for scale in study.scales:
        run = observed.sel(scale=scale)
        after = run.sel(time=run["loss"] < 1e-3 * run["loss"][0])
        data = study._data
        expected = late_curve(
            data.inputs,
            data.targets,
            np.eye(study.inputs),
            data.coefficients,
            after["time"].to_numpy(),
            scale=scale,
            weight_decay=study.weight_decay,
        ).test_error
        # Earlier than the predicted fitting time.
        assert float(after["time"][0]) < study._fitted
        assert float(abs(after["test_error"] - expected).max()) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "sizes"), [(4, (20, 50, 1))])
def test_grokking_matches_theory_for_other_sizes(seed, sizes):
    curve, time = largest_errors(drawn(seed, **dict(zip(("samples", "inputs", "relevant"), sizes, strict=True))))
    assert curve < 0.02
    assert time < 0.03


@pytest.mark.slow
def test_the_test_error_falls_long_after_the_loss():
    observed = dataclasses.replace(drawn(1), scales=[1.0, 2.0, 4.0]).observe()
    assert np.all(observed["delay"] > 100)
    # Doubling the initial weights delays grokking by ln 2 over the weight decay, up to the recording interval.
    shift = np.diff(observed["grokking_time"]) * drawn(1).weight_decay
    assert shift == pytest.approx(np.log(2), rel=0.02)


@pytest.mark.slow
def test_theory_with_another_weight_decay_disagrees():
    study = drawn(2)
    predicted = dataclasses.replace(study, weight_decay=1.05 * study.weight_decay).predict().record
    assert study.compared(study.observe().record, predicted).verdict.outcome == "disagree"


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("scales", {"scales": []}),
        ("scales", {"scales": [1.0, 1.0]}),
        ("scales", {"scales": [-1.0]}),
        ("weight_decay", {"weight_decay": 0.0}),
        ("weight_decay", {"weight_decay": 10.0}),
        ("samples", {"samples": 24}),
        ("relevant", {"relevant": 0}),
        ("threshold", {"threshold": 0.9}),
        ("threshold", {"threshold": -1.0}),
        ("times", {"times": 3}),
        ("seed", {"seed": -1}),
    ],
)
def test_a_field_out_of_range_is_rejected_by_name_before_training(monkeypatch, argument, change):
    name = "dynascope.studies.grokking.grokking_diagonal.study.observe"
    monkeypatch.setattr(name, lambda *_, **__: pytest.fail("it was trained"))
    with pytest.raises(InputError) as refusal:
        GrokkingDiagonal(**GrokkingDiagonal.tiny | change).run()
    assert refusal.value.argument == argument

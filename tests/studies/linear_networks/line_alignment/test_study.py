from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.linear_networks.line_alignment.study import LineAlignment

# Sizes for which programs are compiled once.
SIZES = {name: LineAlignment.tiny[name] for name in ("width", "input_dimension", "samples", "times")}


@pytest.mark.slow
@pytest.mark.parametrize("target", [1.0, -2.0])
def test_starts_are_what_they_are_called(target):
    predicted = LineAlignment(**SIZES, target=target, second_rate=2.0).predict()
    signs = predicted["alignment_sign"].to_numpy() * np.sign(target)
    np.testing.assert_array_equal(signs[:5], [1, 1, -1, 0, 1])
    # A small random start may have an output of either sign.
    assert predicted["rescaling"].values[1:5].tolist() == ["grows", "shrinks", "shrinks", "shrinks, then grows"]
    alignment = predicted["alignment"].transpose("time", "start").to_numpy() * np.sign(target)
    assert np.all(np.diff(alignment, axis=0) * signs >= -1e-12)
    # The kernel phase keeps its layers nearly orthogonal, and exactly parallel layers stay so.
    assert np.all(np.abs(alignment[:, 1]) < 0.2)
    np.testing.assert_allclose(alignment[:, 3], 1, atol=1e-12)


@pytest.mark.slow
def test_descent_is_reported_beside_and_sgd_of_a_linear_network_follows_the_theory():
    study = LineAlignment(**SIZES)
    tree = study.run()
    observed, predicted = tree.observed, tree.predicted
    followed = observed["linear_sgd_alignment"].transpose("start", "step").to_numpy()
    # Steps are a hundredth of the shortest time scale, and batches of ten samples differ.
    np.testing.assert_allclose(followed[:, -1], predicted["alignment"].transpose("start", "time")[:, -1], atol=0.05)
    for name in ("linear_adam", "relu_sgd", "relu_adam"):
        curve = observed[f"{name}_alignment"]
        assert np.isfinite(curve).all()
        assert np.abs(curve).max() <= 1 + 1e-12
    counts = observed["change"].to_series()
    assert list(counts.index) == ["gradient flow", "linear sgd", "linear adam", "relu sgd", "relu adam"]
    assert (counts["gradient flow"], counts["linear sgd"]) == (7, 6)
    assert [name for name, each in tree.claims.items() if each.decides] == ["gradient flow", "linear sgd"]
    assert not [name for name in tree.quantities if "sgd" in name or "adam" in name]


def test_a_parametrisation_starts_from_the_same_weights_whichever_others_are_chosen():
    both, one = (LineAlignment(**SIZES, parametrisations=each) for each in (["Xavier+", "Kaiming+"], ["Kaiming+"]))
    curves = [each.predict()["alignment"].sel(start="Kaiming+").isel(time=0) for each in (both, one)]
    assert float(curves[0]) == float(curves[1])
    assert "Xavier+" not in one.predict()["start"].values


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("target", bad) for bad in (0.0, np.nan, np.inf)),
        *(("first_rate", bad) for bad in (0.0, -1.0)),
        ("second_rate", np.nan),
        ("disturbance", 1.5),
        ("noise", -0.1),
        *(("width", bad) for bad in (1, 0)),
        ("input_dimension", 0),
        ("samples", 1),
        ("times", 1),
        *(("parametrisations", bad) for bad in (["xavier"], ["Xavier+", "Xavier+"])),
        *(("batch_size", bad) for bad in (0, 21)),
        ("seed", -1),
    ],
)
def test_a_field_out_of_range_is_refused_by_name_when_the_study_is_made(field, value):
    with pytest.raises(InputError) as refusal:
        LineAlignment(**{**LineAlignment.tiny, field: value})
    assert refusal.value.argument == field

from __future__ import annotations

from typing import Any

import pytest

from dynascope.errors import InputError
from dynascope.studies.regimes.random_hierarchy.study import RandomHierarchy

SMALL: dict[str, Any] = dict(RandomHierarchy.tiny) | {
    **{"sample_sizes": [64, 128, 256, 512, 1024, 2048], "test_samples": 500, "channels": 32},
    **{"width": 32, "steps": 2000, "seeds": 3, "learning_rate": 4.0},
}


@pytest.fixture(scope="module")
def study():
    return RandomHierarchy(**SMALL)


@pytest.fixture(scope="module")
def sides(study):
    return study.observe(), study.predict()


@pytest.mark.slow
def test_the_tree_learns_from_the_critical_number_of_strings(study, sides):
    result = study.compare(*sides)
    assert {result.claims[name].outcome for name in ("critical_samples", "depth")} == {"holds"}
    assert result.verdict.outcome != "disagree"


@pytest.mark.slow
def test_errors_fall_with_the_number_of_strings_and_the_tree_needs_fewer(sides):
    errors = sides[0].record["mean_test_error"].sel(relative_scale=1.0)
    tree, shallow = errors.sel(network="tree").to_numpy(), errors.sel(network="1 hidden layer").to_numpy()
    assert tree[0] > 0.3
    assert tree[-1] < 0.02
    assert min(shallow[2:] - tree[2:]) > 0.05


@pytest.mark.slow
def test_the_second_layer_becomes_insensitive_to_synonyms_of_level_one_but_not_of_the_label(sides):
    after = sides[0].record["mean_tree_sensitivity"].sel(relative_scale=1.0, sample_size=2048, layer=2).to_numpy()
    before = sides[0].record["initial_tree_sensitivity"].sel(relative_scale=1.0, layer=2)
    before = before.mean("seed").to_numpy()
    assert after[0] < 0.5 * before[0]
    assert after[2] > 0.8 * before[2]  # synonyms of the label, of which this layer sees one half at a time


@pytest.mark.slow
def test_a_wrong_sensitivity_of_the_inputs_breaks_the_check(study, sides):
    observed, predicted = sides
    wrong = predicted.record.assign(input_sensitivity=1.2 * predicted.record["input_sensitivity"])
    result = study.compared(observed.record, wrong)
    assert not result.checks["input_sensitivity"].agrees
    assert result.verdict.outcome == "undecided"


@pytest.mark.slow
def test_the_initial_outputs_and_hence_the_initial_features_do_not_depend_on_the_relative_scale(sides):
    before = sides[0].record["initial_tree_sensitivity"].to_numpy()
    assert before[0] == pytest.approx(before[2], rel=1e-3)


def test_the_published_hierarchy_has_the_published_scales():
    study = RandomHierarchy()
    assert (study.critical_samples, study.number_of_strings) == (256, 65_536)
    assert study.threshold == pytest.approx(0.075)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"multiplicity": 5}, "multiplicity"),
        ({"classes": 6}, "multiplicity"),
        ({"sample_sizes": [64, 8000]}, "sample_sizes"),
        ({"test_samples": 4000}, "sample_sizes"),
        ({"sample_sizes": [256, 64]}, "sample_sizes"),
        ({"relative_scales": [0.5, 0.9, 2.0]}, "relative_scales"),
        ({"relative_scales": [1.0, 2.0, 4.0]}, "relative_scales"),
        ({"seeds": 1}, "seeds"),
    ],
)
def test_a_field_out_of_range_is_rejected_by_name(changed, field):
    fields: dict[str, Any] = {**RandomHierarchy.tiny, **changed}
    with pytest.raises(InputError) as refusal:
        RandomHierarchy(**fields)
    assert refusal.value.argument == field

from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.staircases.group_composition.study import GroupComposition
from dynascope.theory.groups import maximal_utility

FIELDS = {"group": "D3", "irreps": ["sign", "2d"], "amplitudes": [2.3, 1.9], "width": 48}


def agreement(tree) -> dict[str, dict]:
    return tree.quantities


def left_on_plateaus(tree) -> list[dict[str, float]]:
    """The share of each irrep that is not learned yet, midway between two jumps and at the end."""
    loss = tree.observed["irrep_loss"]
    jumps = tree.residual["observed_jump_time"].to_numpy()
    times = [*(jumps[1:] + jumps[:-1]) / 2, float(loss["time"][-1])]
    shares = loss.sel(time=times, method="nearest") / loss[0]
    return [dict(zip(shares["irrep"].to_numpy().tolist(), row, strict=True)) for row in shares.to_numpy()]


@pytest.fixture(scope="module")
def study():
    return GroupComposition(**FIELDS)


@pytest.fixture(scope="module")
def tree(study):
    return study.run()


@pytest.mark.slow
def test_a_group_that_does_not_commute_is_learned_irrep_by_irrep(tree):
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    assert tree.predicted["learned"].to_numpy().tolist() == ["learns the irrep sign", "learns the irrep 2d"]
    # What the times leave out is the same at both scales up to powers of the scale, and times are read off 1000.
    np.testing.assert_allclose(tree.residual["slope_error"], 0, atol=1e-3)


@pytest.mark.slow
def test_each_drop_is_that_of_its_irrep(tree):
    middle, end = left_on_plateaus(tree)
    # Half-way to its jump an irrep has begun to grow; the last one is left with a tail that falls as a power of time.
    assert middle["sign"] < 1e-3
    assert middle["2d"] > 0.99
    assert max(end.values()) < 0.02


@pytest.mark.slow
def test_the_irreps_make_up_the_whole_loss(tree):
    observed = tree.observed
    # The outputs hold nothing else; sums of order one.
    np.testing.assert_allclose(observed["irrep_loss"].sum("irrep"), observed["loss"], atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "refuted"),
    [
        # The other order.
        ({"amplitudes": [1.9, 2.3]}, {"jump_time", "slope", "extra_jumps"}),
        # The times go as the third power, the drops as the second.
        ({"amplitudes": [2.2, 1.9]}, {"slope"}),
        ({"amplitudes": [2.3, 2.1]}, {"slope", "level"}),
        ({"irreps": ["sign"], "amplitudes": [2.3]}, {"jump_time", "slope"}),
        ({"sequence_length": 3, "width": 128}, {"jump_time", "slope"}),
    ],
)
def test_the_theory_of_another_encoding_or_length_is_refuted(study, tree, fields, refuted):
    other = GroupComposition(**FIELDS | fields).predict().record
    judged = study.compared(tree.observed, other)
    assert judged.verdict.outcome == "disagree"
    assert refuted <= {name for name, each in agreement(judged).items() if not each.agrees}


@pytest.mark.slow
def test_a_smaller_amplitude_is_learned_first_in_a_smaller_dimension():
    study = GroupComposition(group="D3", sequence_length=3, irreps=["2d", "sign"], amplitudes=[3.0, 2.9], width=128)
    tree = study.run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    assert tree.predicted["learned"].to_numpy().tolist() == ["learns the irrep sign", "learns the irrep 2d"]
    plateau, _ = left_on_plateaus(tree)
    assert plateau["sign"] < 0.01 < 0.9 < plateau["2d"]


@pytest.mark.slow
def test_the_irreps_of_a_published_group_are_learned_one_by_one():
    tree = GroupComposition(group="D5").run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    assert not tree.predicted["slow"].any()
    for learned, left in enumerate(left_on_plateaus(tree), start=1):
        shares = list(left.values())
        assert max(shares[:learned]) < 0.02
        assert min(shares[learned:], default=1.0) > 0.98


@pytest.mark.slow
def test_irreps_come_in_order_though_the_first_pushes_the_second():
    tree = GroupComposition(**FIELDS | {"irreps": ["2d", "sign"], "amplitudes": [2.3, 1.6]}).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    assert tree.predicted["slow"].to_numpy().tolist() == [False, True]
    # Nothing of this is in the verdict: the theory leaves out plateaus beside a push.
    np.testing.assert_allclose(tree.residual["level_error"], 0, atol=0.05)
    plateau, _ = left_on_plateaus(tree)
    assert plateau["2d"] < 0.05
    assert plateau["sign"] > 0.98


@pytest.mark.parametrize("group", ["C4", "C11", "C5xC5", "D3", "D5", "D7", "S4", "Oh", "Q8"])
def test_the_irreps_chosen_do_not_push_each_other_and_are_spaced_evenly(group):
    study = GroupComposition(group=group)
    steps = study.predict().record
    assert steps.sizes["jump"] >= 2
    assert not steps["slow"].any()
    # Rounding of a cube root and a cube.
    np.testing.assert_allclose(steps["accelerated_time"], 2.5 ** np.arange(steps.sizes["jump"]), rtol=1e-12)
    utilities = [maximal_utility(study._group, study._encoding, irrep, 2) for irrep in study._irreps]
    np.testing.assert_allclose(steps["utility"], utilities, rtol=1e-12)


def test_where_all_irreps_push_each_other_two_are_taken_and_the_second_marked():
    steps = GroupComposition(group="A5").predict()
    assert steps["slow"].to_numpy().tolist() == [False, True]
    assert "acquire weight in 4d" in str(steps["reason"].to_numpy()[1])


@pytest.mark.parametrize(
    ("fields", "argument"),
    [
        ({"group": "E8"}, "group"),
        ({"group": "C1", "irreps": [], "amplitudes": []}, "group"),
        ({"irreps": ["3d"]}, "irreps"),
        ({"irreps": ["trivial"]}, "irreps"),
        ({"irreps": ["2d", "2d"]}, "irreps"),
        *(
            ({"amplitudes": bad}, "amplitudes")
            for bad in ([1.0], [1.0, -1.0], [1.0, 0.0], [1.0, np.nan], [np.inf, 1.0])
        ),
        *(({"sequence_length": bad}, "sequence_length") for bad in (0, 1, 21)),
        *(({"width": bad}, "width") for bad in (-1, 0, 1, 31)),
        *(({"scale": bad}, "scale") for bad in (0.0, -1.0, 1.0, np.nan)),
        ({"seed": -1}, "seed"),
    ],
)
def test_a_field_out_of_range_is_refused_by_name_when_the_study_is_made(fields, argument):
    with pytest.raises(InputError) as refusal:
        GroupComposition(**FIELDS | fields)
    assert refusal.value.argument == argument

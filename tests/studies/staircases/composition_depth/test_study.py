from __future__ import annotations

import numpy as np
import pytest
from tiny_runs import tiny_run

from dynascope.errors import InputError
from dynascope.studies import find_study
from dynascope.studies.staircases.composition_depth import study as composition_depth

CompositionDepth = find_study("composition-depth")
tiny = CompositionDepth(**CompositionDepth.tiny)


@pytest.fixture(scope="module")
def sides():
    run = tiny_run("composition-depth")
    return run.observed, run.predicted


def test_the_width_of_one_layer_grows_and_that_of_deeper_networks_does_not():
    predicted = CompositionDepth(group="D3", longest=6).predict()
    width, depth = (predicted[name].to_numpy() for name in ("width", "depth"))
    # Golden numbers: Σ 2^{k−1} D^{k+1} over a sign and a plane.
    assert width[:, 0].tolist() == [2 ** (k - 1) * (1 + 2 ** (k + 1)) for k in range(2, 7)]
    assert width[:2, 0].tolist() == [18, 68]
    assert np.all(width[:, 1:] == 18)
    assert depth.T.tolist() == [[1, 1, 1, 1, 1], [1, 2, 3, 4, 5], [1, 2, 2, 3, 3]]


@pytest.mark.slow
def test_what_is_measured_on_networks_is_what_they_are(sides):
    observed, _ = sides
    # One sign: polarisation takes 2^{k−1} neurons.
    assert observed["width"].to_numpy().tolist() == [[2, 2, 2], [4, 2, 2]]
    assert observed["depth"].to_numpy().tolist() == [[1, 1, 1], [1, 2, 2]]
    assert float(observed["loss"].max()) < 1e-24
    assert np.all(observed["exactness"] > 1 - 1e-10)
    assert np.all(observed["trained_loss"] <= tiny.target_loss)
    assert np.all(observed["trained_width"] >= tiny.smallest_width)


@pytest.mark.slow
@pytest.mark.parametrize("quantity", ["width", "depth", "exactness"])
@pytest.mark.parametrize("architecture", ["two-layer", "recurrent", "tree"])
def test_a_wrong_prediction_for_one_architecture_fails_its_check(sides, quantity, architecture):
    observed, predicted = sides
    # One neuron or layer more for the longest sequence, or an error of one in a million.
    change = -1e-6 if quantity == "exactness" else 1
    here = (predicted["architecture"] == architecture) & (predicted["length"] == 3)
    tree = tiny.compared(observed, predicted.assign({quantity: predicted[quantity] + change * here}))
    wrong = {name for name, each in tree.checks.items() if not each.agrees}
    assert wrong == {quantity, f"{quantity}_maximum"}


def test_a_network_with_a_wrong_weight_fails_its_check_and_nothing_is_concluded(monkeypatch):
    exact = composition_depth.two_layer_composition

    def spoilt(*arguments, **options):
        network = exact(*arguments, **options)
        return network.with_neurons(network.neurons + 1e-6)

    monkeypatch.setattr(composition_depth, "two_layer_composition", spoilt)
    monkeypatch.setattr(CompositionDepth, "_train", lambda *_: {"trained_width": 8})
    tree = tiny.run()
    assert tree.verdict.outcome == "undecided"
    checks = tree.checks
    assert [name for name, each in checks.items() if not each.agrees] == ["exactness", "exactness_maximum"]


@pytest.mark.parametrize(
    ("widths", "verdict"),
    [
        ({"two-layer": (16, 32, 128), "recurrent": (16, 16, 16), "tree": (32, 16, 32)}, "agree"),
        ({"two-layer": (16, 32, 0), "recurrent": (16, 16, 16), "tree": (16, 16, 16)}, "agree"),
        # The width for four elements lies between that for two and four times that, or at most at as much.
        ({"two-layer": (16, 32, 32), "recurrent": (16, 16, 32), "tree": (16, 16, 32)}, "undecided"),
        ({"two-layer": (16, 16, 16), "recurrent": (16, 16, 16), "tree": (16, 16, 16)}, "disagree"),
        ({"two-layer": (16, 32, 128), "recurrent": (16, 32, 128), "tree": (16, 16, 16)}, "disagree"),
        ({"two-layer": (8, 16, 16), "recurrent": (8, 8, 16), "tree": (0, 0, 0)}, "undecided"),
        # 18 neurons suffice for a tree, so it is training that falls short, and the other two claims decide.
        ({"two-layer": (16, 32, 128), "recurrent": (16, 16, 16), "tree": (16, 16, 0)}, "agree"),
    ],
)
def test_the_growth_of_the_widths_that_training_needs_decides_the_verdict(monkeypatch, widths, verdict):
    study = CompositionDepth(group="D3", longest=4)
    monkeypatch.setattr(CompositionDepth, "_train", lambda _, name, k, __: {"trained_width": widths[name][k - 2]})
    assert study.run().verdict.outcome == verdict


@pytest.mark.slow
def test_training_needs_ever_more_width_in_one_layer_and_the_same_in_deeper_networks():
    observed = CompositionDepth(longest=3, smallest_width=16, seeds=2).observe()
    width = observed["trained_width"].sel(architecture="two-layer").to_numpy()
    deeper = observed["trained_width"].sel(architecture=["recurrent", "tree"]).to_numpy()
    assert 2 * width[0] <= width[1]
    assert np.all(deeper > 0)
    assert np.all(deeper <= 2 * width[0])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("group", "M11"),
        ("longest", 2),
        ("smallest_width", 0),
        ("largest_width", 1),
        ("target_loss", 0.0),
        ("seeds", 0),
        ("steps", 0),
        ("learning_rate", -1.0),
    ],
)
def test_a_field_out_of_range_is_refused_by_name_when_the_study_is_made(field, value):
    with pytest.raises(InputError) as refusal:
        CompositionDepth(**CompositionDepth.tiny | {field: value})
    assert refusal.value.argument == field

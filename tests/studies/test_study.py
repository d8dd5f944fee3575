from __future__ import annotations

import pytest
from jaxtyping import TypeCheckError

from dynascope.errors import InputError
from dynascope.results import Observation, Prediction, make_record
from dynascope.studies import Reference, Study, curve_tolerance, find_studies, parameter
from dynascope.validation.bounded import PositiveFloat

CALLS: list[str] = []


class Decay(Study):
    """The loss halves in every unit of time."""

    start: PositiveFloat = parameter(1.0, "Loss at time zero.")

    name = "decay"
    reference = Reference(paper="A. Author, Decay", arxiv="1234.56789", claim="It decays.")
    minutes = 0.1
    tolerance = {"loss": (0.25, "a quarter, because it is an example")}  # noqa: RUF012 - as studies declare it

    def observed(self):
        CALLS.append("observe")
        return self.curve(0.5)

    def predicted(self):
        CALLS.append("predict")
        return self.curve(0.45)

    def curve(self, factor: float):
        loss = [self.start, self.start * factor]
        return make_record({"loss": (("time",), loss)}, {"time": [0.0, 1.0]}, attributes={"task": "t", "network": "n"})


def test_a_run_predicts_before_it_observes_and_compares():
    CALLS.clear()
    tree = Decay().run()
    assert CALLS == ["predict", "observe"]
    assert list(tree.sides) == ["observed", "predicted"]


def test_what_is_predicted_and_observed_can_be_compared_with_the_verdict_of_a_run():
    observation, prediction = Decay().observe(), Decay().predict()
    assert isinstance(observation, Observation)
    assert isinstance(prediction, Prediction)
    by_hand, run = Decay().compare(observation, prediction), Decay().run()
    assert (by_hand.verdict, by_hand.quantities) == (run.verdict, run.quantities)
    assert by_hand.predicted.identical(run.predicted)


def test_exchanged_sides_are_rejected():
    with pytest.raises((InputError, TypeCheckError)):
        Decay().compare(Decay().predict(), Decay().observe())


def test_the_tolerance_of_the_study_replaces_that_of_the_theory_where_it_is_named():
    agreement = Decay().run().quantities
    assert (agreement["loss"].tolerance, agreement["loss"].agrees) == (0.25, True)
    assert agreement["loss"].reason == "a quarter, because it is an example"
    # Not named: the usual one percent, and the largest residual is five percent of the largest value.
    assert (agreement["loss_maximum"].tolerance, agreement["loss_maximum"].agrees) == (0.01, False)


def test_the_result_says_which_study_it_came_from_and_with_which_parameters():
    result = Decay(start=2.0).run()
    assert (result.study, result.title, result.claim) == ("decay", "Decay", "It decays.")
    assert result.reference == "A. Author, Decay (arXiv 1234.56789)"
    assert result.parameters["start"].value == 2.0


def test_a_study_that_does_not_say_how_cannot_run():
    with pytest.raises(NotImplementedError):
        Study().observe()


def test_studies_are_found_in_alphabetical_order_and_only_once_declared():
    found = find_studies()
    assert list(found) == sorted(found)
    assert {"linear-staircase", "diagonal-staircase", "layerwise-modes"} <= set(found)
    assert Study not in found.values()
    assert Decay not in found.values()


def test_a_curve_is_judged_as_a_whole_and_at_its_worst_place_by_the_same_limit():
    exact, near = (1e-6, "it is exact"), (0.1, "it is not")
    assert curve_tolerance(loss=exact, strength=near) == {
        **{"loss": exact, "loss_maximum": exact},
        **{"strength": near, "strength_maximum": near},
    }


def test_the_result_says_by_which_command_it_is_made_once_more():
    assert Decay().command == "dynascope run decay"
    assert Decay(start=2.0).command == "dynascope run decay --start 2.0"

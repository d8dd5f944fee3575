from typing import Annotated, Literal

import numpy as np
import pytest
from annotated_types import Ge, Interval
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.studies import Study, fields, parameter
from dynascope.validation.bounded import FiniteFloat, Fraction, NonNegativeInt, PositiveFloat, PositiveInt, Seed


class Sample(Study):
    """A study that computes nothing."""

    samples: Annotated[int, Ge(2)] = parameter(10, "Number of samples.")
    chosen: PositiveInt = parameter(3, "How many are chosen.", most="samples")
    strongest: PositiveFloat = parameter(2.0, "The strongest.")
    weakest: PositiveFloat = parameter(1.0, "The weakest.", most="strongest")
    share: Annotated[float, Interval(ge=0, lt=1)] = parameter(0.5, "A share.")
    target: FiniteFloat = parameter(-1.0, "Any number.")
    rate: PositiveFloat | None = parameter(None, "A rate, or None for the usual one.")
    factors: list[PositiveFloat] = parameter([0.1, 1.0], "Factors.")
    widths: list[PositiveInt] = parameter([2, 4], "Widths.", increasing=True, fewest=2)
    level: Literal["low", "high"] = parameter("low", "Which level.")
    runs: list[str] = parameter(["one"], "Which runs.", options=("one", "two"))
    extras: list[str] = parameter([], "Which runs besides.", options=("one", "two"), fewest=0)
    loud: bool = parameter(False, "Whether to be loud.")
    data: str = parameter("digits", "Where the data are.")
    limit: Annotated[int, Ge(2)] | None = parameter(None, "A number, or None for as many as it takes.")
    strengths: list[PositiveFloat] = parameter([], "Strengths, which may repeat.", fewest=0, repeats=True)
    momentum: Fraction = parameter(0.9, "Momentum.")
    seed: Seed = parameter(0, "Seed.")


def test_a_study_is_a_frozen_dataclass_whose_docstring_names_its_fields():
    study = Sample()
    assert (study.samples, study.factors, study.rate) == (10, [0.1, 1.0], None)
    with pytest.raises(AttributeError):
        study.samples = 3
    assert "    Attributes:\n        samples: Number of samples. At least 2.\n" in Sample.__doc__


def test_what_may_be_chosen_is_what_the_literal_says_that_annotates_the_field():
    assert Sample(level="high").level == "high"
    with pytest.raises(InputError, match="level is 'lower'"):
        Sample(level="lower")


def test_a_list_may_be_empty_or_repeat_where_its_field_says_so():
    assert Sample(strengths=[1.0, 1.0]).strengths == [1.0, 1.0]
    assert (Sample().strengths, Sample().extras, Sample().limit) == ([], [], None)


def test_lists_are_not_shared_between_studies():
    assert Sample().factors is not Sample().factors


@given(
    samples=st.integers(2, 100),
    share=st.floats(0, 1, exclude_max=True),
    target=st.floats(1e-3, 1e3),
    seed=st.integers(0),
)
def test_what_is_inside_the_bounds_is_taken(samples, share, target, seed):
    study = Sample(samples=samples, chosen=min(2, samples), share=share, target=-target, seed=seed)
    assert (study.samples, study.share, study.target, study.seed) == (samples, share, -target, seed)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("field", "value", "remedy"),
    [
        ("samples", 1, "at least 2"),
        ("samples", 2.5, "integer"),
        ("chosen", 11, r"an integer of at most samples \(10\)"),
        ("chosen", 0, "of at least 1"),
        ("strongest", np.nan, "finite number above 0"),
        ("strongest", np.inf, "finite"),
        ("weakest", 3.0, r"of at most strongest \(2\)"),
        ("weakest", "much", "finite number"),
        ("share", 1.0, "below 1"),
        ("share", -0.1, "of at least 0"),
        ("target", np.inf, "finite"),
        ("rate", -1.0, "above 0"),
        ("factors", [], "one or more different values"),
        ("factors", [1.0, 1.0], "different"),
        ("factors", [1.0, -1.0], "above 0"),
        ("factors", 1.0, "a list in which each element is a number"),
        ("widths", [2], "2 or more"),
        ("widths", [4, 2], "sort"),
        ("widths", [2, 4.5], "integer"),
        ("runs", ["three"], "one, two"),
        ("runs", [], "one or more"),
        ("extras", ["three"], "choose from one, two"),
        ("loud", "yes", "True"),
        ("limit", 1, "at least 2"),
        ("strengths", 1.0, "a list in which each element is a number"),
        ("strengths", [1.0, 1.0, -1.0], "above 0"),
        ("momentum", 1.5, "at most 1"),
        ("seed", -1, "0"),
    ],
)
def test_what_is_outside_is_refused_when_the_study_is_made(field, value, remedy):
    with pytest.raises(InputError, match=remedy) as caught:
        Sample(**{field: value})
    assert caught.value.argument == field


def test_what_a_value_stands_for_is_said_only_of_that_value():
    class Stands(Study):
        """A study that computes nothing."""

        batch: NonNegativeInt = parameter(0, "Samples in a step.", zero="all samples")
        rate: PositiveFloat | None = parameter(None, "A rate.")
        networks: list[str] = parameter(["a"], "Networks.", options=("a", "b"), fewest=0)
        sizes: list[PositiveInt] = parameter([], "Sizes.", fewest=0)

    assert fields.stand_ins(Stands()) == {
        **{"batch": "all samples", "rate": "chosen by the study", "sizes": "chosen by the study"}
    }
    assert fields.stand_ins(Stands(batch=3, rate=0.1, networks=[], sizes=[1])) == {"networks": "none"}


def test_bounds_are_said_where_they_say_more_than_that_a_field_is_a_count():
    said = fields.bound_descriptions(Sample)
    assert {name: said[name] for name in ("samples", "chosen", "weakest", "share", "rate", "factors", "momentum")} == {
        **{"samples": "at least 2", "chosen": "at most `samples`", "weakest": "above 0 and at most `strongest`"},
        **{"share": "at least 0 and below 1", "rate": "above 0", "factors": "each above 0"},
        "momentum": "between 0 and 1",
    }
    assert not {"target", "widths", "level", "loud", "data", "seed"} & set(said)


def test_values_are_kept_as_their_annotations_have_them():
    study = Sample(samples=np.int64(20), factors=(np.float32(0.5), 2))
    assert type(study.samples) is int
    assert study.factors == [0.5, 2]
    assert (type(study.factors), type(study.factors[0])) == (list, float)

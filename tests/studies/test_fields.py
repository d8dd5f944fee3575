from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.studies import Study, fields
from dynascope.validation import require_context


class Sample(Study):
    """A study that computes nothing."""

    samples: int = fields.count(10, "Number of samples.", least=2)
    chosen: int = fields.count(3, "How many are chosen.", most="samples")
    strongest: float = fields.positive(2.0, "The strongest.")
    weakest: float = fields.positive(1.0, "The weakest.", most="strongest")
    share: float = fields.fraction(0.5, "A share.", open_above=True)
    target: float = fields.number(-1.0, "Any number but zero.", nonzero=True)
    rate: float | None = fields.number(None, "A rate, or None for the usual one.", above=0.0)
    factors: list[float] = fields.numbers([0.1, 1.0], "Factors.", above=0.0)
    widths: list[int] = fields.numbers([2, 4], "Widths.", whole=True, increasing=True, fewest=2)
    kind: str = fields.choice("one", "Which kind.", ("one", "two"))
    level: Literal["low", "high"] = fields.choice("low", "Which level.")
    runs: list[str] = fields.choices(["one"], "Which runs.", ("one", "two"))
    extras: list[str] = fields.choices([], "Which runs besides.", ("one", "two"), fewest=0)
    loud: bool = fields.flag(False, "Whether to be loud.")
    data: str = fields.text("digits", "Where the data are.")
    limit: int | None = fields.count(None, "A number, or None for as many as it takes.", least=2)
    strengths: list[float] = fields.numbers([], "Strengths, which may repeat.", fewest=0, different=False, above=0.0)
    context_length: float = fields.checked(np.inf, "A length, which may be infinite.", require_context)
    names: list[str] = fields.checked([], "Names.")
    seed: int = fields.seed("Seed.")


def test_a_study_is_a_frozen_dataclass_whose_docstring_names_its_fields():
    study = Sample()
    assert (study.samples, study.factors, study.rate) == (10, [0.1, 1.0], None)
    with pytest.raises(AttributeError):
        study.samples = 3
    assert "    Attributes:\n        samples: Number of samples.\n" in Sample.__doc__


def test_what_may_be_chosen_is_what_the_literal_says_that_annotates_the_field():
    assert Sample(level="high").level == "high"
    with pytest.raises(InputError, match="level is 'lower'"):
        Sample(level="lower")


def test_a_list_may_be_empty_or_repeat_where_its_field_says_so():
    assert Sample(strengths=[1.0, 1.0]).strengths == [1.0, 1.0]
    assert (Sample().strengths, Sample().extras, Sample().names, Sample().limit) == ([], [], [], None)


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
        ("chosen", 11, "10"),
        ("chosen", 0, "from 1 to 10"),
        ("strongest", np.nan, "finite number above 0"),
        ("strongest", np.inf, "finite"),
        ("weakest", 3.0, r"of at most strongest \(2\)"),
        ("weakest", "much", "finite number"),
        ("share", 1.0, "below 1"),
        ("share", -0.1, "of at least 0"),
        ("target", 0.0, "other than zero"),
        ("rate", -1.0, "above 0"),
        ("factors", [], "one or more different numbers"),
        ("factors", [1.0, 1.0], "different"),
        ("factors", [1.0, -1.0], "above 0"),
        ("factors", 1.0, "one or more"),
        ("widths", [2], "2 or more"),
        ("widths", [4, 2], "sort"),
        ("widths", [2, 4.5], "integer"),
        ("kind", "three", "'one' or 'two'"),
        ("runs", ["three"], "one, two"),
        ("runs", [], "one or more"),
        ("extras", ["three"], "choose from one, two"),
        ("loud", "yes", "True"),
        ("limit", 1, "at least 2"),
        ("strengths", 1.0, "a list of numbers"),
        ("strengths", [1.0, 1.0, -1.0], "above 0"),
        ("context_length", 0.0, "or infinity"),
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

        batch: int = fields.count(0, "Samples in a step.", least=0, zero="all samples")
        rate: float | None = fields.number(None, "A rate.", above=0.0)
        networks: list[str] = fields.choices(["a"], "Networks.", ("a", "b"), fewest=0)
        sizes: list[int] = fields.checked([], "Sizes.")

    assert fields.stand_ins(Stands()) == {
        **{"batch": "all samples", "rate": "chosen by the study", "sizes": "chosen by the study"}
    }
    assert fields.stand_ins(Stands(batch=3, rate=0.1, networks=[], sizes=[1])) == {"networks": "none"}

from __future__ import annotations

import pytest

from dynascope.report.wording import command, parameter, plain


@pytest.mark.parametrize(("name", "value", "text"), [("batch_size", 64, "64"), ("seed", 0, "0"), ("noise", 0.0, "0")])
def test_a_number_is_written_as_it_is(name, value, text):
    assert parameter(name, value) == text


def test_a_number_that_stands_for_something_is_not_written():
    assert parameter("batch_size", 0) == parameter("batch_size", None) != "0"
    assert parameter("halving_steps", 0) != "0"
    assert parameter("amplitudes", []) == parameter("frequencies", None) != parameter("networks", [])


def test_the_command_names_every_parameter_and_quotes_it():
    parameters = {"seed": 3, "whitened": False, "data": "my file.csv", "scales": [1e-3, 1e-6], "left_out": None}
    assert command("a-study", parameters) == (
        "dynascope run a-study --seed 3 --whitened False --data 'my file.csv' --scales 0.001 1e-06"
    )


def test_a_list_is_told_without_brackets_and_quotes():
    assert plain(["H1", "H2"]) == "H1, H2"
    assert plain([1e-8, True, 3]) == "10⁻⁸, yes, 3"


def test_structures_are_written_as_json():
    assert plain({"a": "é"}) == '{"a": "é"}'

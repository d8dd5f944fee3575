from __future__ import annotations

from dynascope.errors import DivergenceError, InputError


def test_an_input_error_is_one_sentence_and_carries_what_a_machine_needs():
    error = InputError("scale is -1.0", argument="scale", value=-1.0, remedy="choose a positive number")
    assert str(error) == "scale is -1.0: choose a positive number."
    assert (error.argument, error.value, error.remedy) == ("scale", -1.0, "choose a positive number")
    assert isinstance(error, ValueError)


def test_a_divergence_error_carries_the_time():
    error = DivergenceError("the loss is infinite", time=3.5, remedy="halve the learning rate")
    assert str(error) == "the loss is infinite: halve the learning rate."
    assert (error.time, error.remedy) == (3.5, "halve the learning rate")
    assert not isinstance(error, InputError)


def test_what_is_wrong_is_told_on_one_line_however_large_the_value_is():
    error = InputError(f"x is {10 * 'a row of numbers' + chr(10)}" * 100, argument="x", remedy="give less")
    assert str(error).count("\n") == 0
    assert len(str(error)) < 1100
    assert str(error).endswith(" …: give less.")

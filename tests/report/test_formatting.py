from __future__ import annotations

from dynascope.report.formatting import command, plain


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

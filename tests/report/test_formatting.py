from __future__ import annotations

from dynascope.report.formatting import parameter_text


def test_a_list_is_told_without_brackets_and_quotes():
    assert parameter_text(["H1", "H2"]) == "H1, H2"
    assert parameter_text([1e-8, True, 3]) == "10⁻⁸, yes, 3"


def test_structures_are_written_as_json():
    assert parameter_text({"a": "é"}) == '{"a": "é"}'

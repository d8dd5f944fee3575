from __future__ import annotations

from dynascope.report.formatting import plain


def test_a_list_is_told_without_brackets_and_quotes():
    assert plain(["H1", "H2"]) == "H1, H2"
    assert plain([1e-8, True, 3]) == "10⁻⁸, yes, 3"


def test_structures_are_written_as_json():
    assert plain({"a": "é"}) == '{"a": "é"}'

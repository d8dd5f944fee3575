from __future__ import annotations

import pytest

from dynascope.report.bibliography import bibtex


@pytest.mark.parametrize(
    ("reference", "key", "authors", "title"),
    [
        (
            "C. C. J. Dominé, N. Anguita, From Lazy to Rich: Exact Learning, in Deep Networks (arXiv 2409.14623)",
            "domine2024",
            "C. C. J. Dominé and N. Anguita",
            "From Lazy to Rich: Exact Learning, in Deep Networks",
        ),
        ("Alternating Gradient Flows (arXiv 2506.06489)", "alternating2025", "", "Alternating Gradient Flows"),
        ("H. Maennel, Gradients & kinks_1", "maennel", "H. Maennel", r"Gradients \& kinks\_1"),
    ],
)
def test_a_reference_is_an_entry(reference, key, authors, title):
    entry = bibtex(reference)
    assert entry.startswith(f"@misc{{{key},\n")
    assert f"title = {{{{{title}}}}}" in entry
    assert (f"author = {{{authors}}}" in entry) if authors else ("author" not in entry)


def test_two_works_are_two_entries():
    text = (
        "Y. Nam, Layerwise dynamics (DPhil thesis, chapter 6); L. Chizat, F. Bach, On Lazy Training (arXiv 1812.07956)"
    )
    first, second = bibtex(text).split("\n\n")
    assert first.startswith("@misc{nam,")
    assert "eprint" not in first
    assert "eprint = {1812.07956}" in second


def test_no_reference_is_no_entry():
    assert bibtex("") == ""

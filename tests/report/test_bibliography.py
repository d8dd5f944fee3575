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


def test_what_follows_an_identifier_is_another_work_even_without_authors():
    first, second = bibtex("Z. Li, Greed (arXiv 2012.09839); Alternating Flows (arXiv 2506.06489)").split("\n\n")
    assert ("2012.09839" in first, "2506.06489" in first) == (True, False)
    assert "{Alternating Flows}" in second


def test_two_works_are_two_entries():
    text = (
        "Y. Nam, Layerwise dynamics (DPhil thesis, chapter 6); L. Chizat, F. Bach, On Lazy Training (arXiv 1812.07956)"
    )
    first, second = bibtex(text).split("\n\n")
    assert first.startswith("@misc{nam,")
    assert "eprint" not in first
    assert "eprint = {1812.07956}" in second


def test_an_identifier_after_a_thesis_is_that_of_the_paper_before():
    text = "A. Power, Grokking; Y. Nam, Layerwise dynamics (DPhil thesis, chapter 6) (arXiv 2201.02177)"
    paper, thesis = bibtex(text).split("\n\n")
    assert paper.startswith("@misc{power2022,")
    assert "eprint = {2201.02177}" in paper
    assert thesis.startswith("@misc{nam,")
    assert "eprint" not in thesis


@pytest.mark.parametrize("note", ["Nam, DPhil thesis (2024), chapter 1", "theory in Y. Nam, DPhil thesis (2024)"])
def test_what_is_said_of_a_thesis_is_a_note_and_no_part_of_the_title(note):
    entry = bibtex(f"J. B. Simon, The eigenlearning framework; {note} (arXiv 2110.03922)")
    assert entry.startswith("@misc{simon2021,")
    assert "title = {{The eigenlearning framework}}" in entry
    assert f"note = {{{note}}}" in entry


def test_no_reference_is_no_entry():
    assert bibtex("") == ""

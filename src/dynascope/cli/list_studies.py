"""The command that lists the studies from their index, without importing them."""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import textwrap
from collections.abc import Iterator, Sequence

import tyro

from dynascope.cli.exit_codes import AGREED
from dynascope.cli.output import print_json
from dynascope.cli.width import page_width
from dynascope.studies.index import StudyEntry, study_index
from dynascope.validation import require

__all__ = ["List"]


@dataclasses.dataclass(frozen=True)
class List:
    """List the studies by subject, or only the studies that match all search words.

    Args:
        words: Search words; each must occur in the name, subject, summary, paper or claim of a study.
        long: Also print the claim, the paper and the run time in minutes.
        json: Print one JSON array.
    """

    words: tyro.conf.Positional[tuple[str, ...]] = ()
    long: bool = False
    json: bool = False

    def __call__(self) -> int:
        """Print the studies; returns the exit code."""
        entries = _matching(list(study_index().values()), self.words)
        if self.json:
            print_json([_row(entry) for entry in entries])
            return AGREED
        describe = _long if self.long else _short
        by_subject = sorted(entries, key=lambda entry: (entry.subject, entry.name))
        for subject, group in itertools.groupby(by_subject, key=lambda entry: entry.subject):
            print(subject.capitalize())
            for line in describe(list(group), page_width()):
                print(line)
            print()
        print("Run a study: `dynascope run STUDY`. More details: `dynascope list --long`.")
        return AGREED


def _matching(entries: list[StudyEntry], words: Sequence[str]) -> list[StudyEntry]:
    texts = {
        each: f"{each.name} {each.subject} {each.summary} {each.claim} {each.paper} {each.arxiv}".casefold()
        for each in entries
    }
    for word in words:
        known = sorted({part for each in entries for part in (each.name, each.subject, *each.name.split("-"))})
        close = difflib.get_close_matches(word.casefold(), known, 1, cutoff=0.7)
        require(
            any(word.casefold() in text for text in texts.values()),
            f"no study matches {word!r}",
            argument="words",
            value=word,
            remedy=(f"did you mean {close[0]}? Otherwise, " if close else "")
            + "list all studies with `dynascope list`",
        )
    found = [entry for entry in entries if all(word.casefold() in texts[entry] for word in words)]
    require(
        len(found) > 0,
        f"no study matches all of the words {', '.join(map(repr, words))}",
        argument="words",
        value=" ".join(words),
        remedy="use fewer search words",
    )
    return found


def _row(entry: StudyEntry) -> dict[str, str | float]:
    return {
        "study": entry.name,
        "paper": entry.paper,
        "arxiv": entry.arxiv,
        "claim": entry.claim,
        "minutes": entry.minutes,
    }


def _short(entries: Sequence[StudyEntry], width: int) -> Iterator[str]:
    for entry in entries:
        start = f"  {entry.name:<21}  "
        yield from textwrap.wrap(
            entry.summary.removesuffix("."),
            width,
            initial_indent=start,
            subsequent_indent=" " * len(start),
            break_on_hyphens=False,
        )


def _long(entries: Sequence[StudyEntry], width: int) -> Iterator[str]:
    for entry in entries:
        yield f"  {entry.name} ({entry.minutes:g} min)"
        for text in (entry.claim, f"{entry.paper} (arXiv {entry.arxiv})"):
            yield from textwrap.wrap(text, width, initial_indent="    ", subsequent_indent="      ")

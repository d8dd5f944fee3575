"""Which theories apply, and what is in the way of the others, as text for people who do not know the papers."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from dynascope.theory.assumptions import SMALL_STEPS

if TYPE_CHECKING:
    from dynascope.prediction.candidate import Candidate, Measured

__all__ = ["in_words"]

_HEADS = {
    "applies": "These apply:",
    "almost": "These almost apply, and what they say is off by about as much as told:",
    "unknown": "These may apply: nothing that could be measured is in the way, and what is marked ? could not be:",
    "no": "These do not apply:",
}
_LARGE = 1e3  # beyond which it does not matter how much
_PLACE = "    "
_WORDS = {
    "jumps": "the steps in which the loss falls from a small start; at each of them something is learned",
    "levels": "the losses between two jumps",
    "features": "what a jump learns: the inputs, or combinations of inputs, that the network begins to use",
    "tangent kernel": "how much a step on one sample changes the output of another; it changes as a network learns "
    "features, and stays as it is where training hardly moves the weights",
}


def in_words(
    candidates: Iterable[Candidate],
    *,
    width: int,
    command: Callable[[Candidate], str] | None = None,
) -> str:
    """The candidates in their order, each with what it gives and how well, or with what is in the way.

    Args:
        candidates: The theories, the best first.
        width: Columns to fill; what is to be copied is never broken.
        command: What to type for one of them, if there is such a command.

    Example:
        >>> from dynascope.prediction.which_theory import which
        >>> found = which(([[1.0], [-1.0]], [[2.0], [-2.0]]), "linear", scale=1e-8)
        >>> said = in_words(found[:1], width=80, command=lambda each: f"$ dynascope predict … --theory {each.name}")
        >>> print(said[: said.index("    more")] + said[said.index("    source") :])
        These apply:
        <BLANKLINE>
          line
            gives  the loss and both layers, the slope and the loss at any time
            holds  exactly; losses to a thousandth
            takes  under a second
            source arXiv:2401.07085
            $ dynascope predict … --theory line
    """
    return "\n".join(_Page(width).lines(list(candidates), command)).rstrip()


@dataclasses.dataclass(frozen=True)
class _Page:
    """Text of some width."""

    width: int

    def lines(self, candidates: list[Candidate], command: Callable[[Candidate], str] | None) -> Iterator[str]:
        """All that is said."""
        for each in max((c.training for c in candidates), key=len, default=()):
            if each.holds is False:
                yield from self._violated(each, "! every theory assumes ")
                yield ""
            elif each.holds is None:
                yield from self._unmeasured(each, "? every theory assumes ")
                yield ""
        for status, head in _HEADS.items():
            group = [candidate for candidate in candidates if candidate.status == status]
            if group:
                yield from (*self._wrapped(head, "", ""), "")
            for candidate in group:
                yield f"  {candidate.name}"
                yield from self._about(candidate)
                if command is not None and status != "no":
                    yield f"{_PLACE}{command(candidate)}"
                yield ""
        yield from self._nearest(candidates)
        yield from self._meanings(candidates)

    def _about(self, candidate: Candidate) -> Iterator[str]:
        """What it gives, how well it holds, and what is in the way."""
        theory = candidate.theory
        rows = {"gives": theory.gives}
        if candidate.status != "no":
            how = "exactly" if theory.exact else f"in {theory.kind}"
            marks = ["!"] * bool(candidate.violated) + ["?"] * bool(candidate.unmeasured)
            if marks and not theory.staircase:
                how += f", but for what is marked {' and '.join(marks)}"
            rows["holds"] = "; ".join(filter(None, (how, candidate.error)))
            rows["takes"] = candidate.cost
        if theory.further and candidate.status != "no":
            rows["more"] = "; ".join(f"{name}: {gives}" for name, gives in theory.further.items())
        if theory.domain is not None:
            rows["source"] = theory.domain.reference
        for name, said in rows.items():
            yield from self._wrapped(said, f"{_PLACE}{name:<7}")
        if candidate.obstacle:
            yield from self._wrapped(candidate.obstacle, f"{_PLACE}! ")
        for each in candidate.violated:
            if each not in candidate.training:
                yield from self._violated(each, f"{_PLACE}! assumes ")
        for each in candidate.unmeasured:
            if each not in candidate.training:
                yield from self._unmeasured(each, f"{_PLACE}? assumes ")

    def _violated(self, measured: Measured, indent: str) -> Iterator[str]:
        """What is assumed, how far the case is from it, what that does, and what to do about it."""
        assumption, value = measured.assumption, measured.value
        assert value is not None
        amount = f"{value:.3g}" if value <= _LARGE else f"over {_LARGE:g}"
        limits = f"{amount} here, at most {assumption.limit:g}"
        if assumption.limit < assumption.almost < float("inf"):
            limits += f", roughly up to {assumption.almost:g}"
        remedy = assumption.remedy
        if assumption is SMALL_STEPS:
            remedy += f", by a factor of {value / assumption.limit:.2g}"
        hanging = " " * (len(indent) - len(indent.lstrip()) + 2)
        text = f"{assumption.name} ({limits}): {assumption.growth}. Remedy: {remedy}."
        yield from self._wrapped(text, indent, hanging)

    def _unmeasured(self, measured: Measured, indent: str) -> Iterator[str]:
        """What is assumed, and what it does where it does not hold."""
        assumption = measured.assumption
        hanging = " " * (len(indent) - len(indent.lstrip()) + 2)
        text = f"{assumption.name} (not measured here): if this does not hold, {assumption.growth}."
        yield from self._wrapped(text, indent, hanging)

    def _nearest(self, candidates: list[Candidate]) -> Iterator[str]:
        """What to do where nothing applies."""
        if len(candidates) < 2 or candidates[0].status != "no":
            return
        first = candidates[0]
        broken = [each.assumption.remedy for each in first.violated if not each.almost]
        what = "; ".join(broken)
        nearest = f"Nearest is {first.name}: {what}. Or train" if what else f"Nearest is {first.name}. Train"
        yield from self._wrapped(f"None applies. {nearest} it and measure, as below.", "", "")
        yield ""

    def _meanings(self, candidates: list[Candidate]) -> Iterator[str]:
        """What words mean, once."""
        given = " ".join(candidate.theory.gives for candidate in candidates if not candidate.obstacle)
        words = {name: meaning for name, meaning in _WORDS.items() if name in given}
        for candidate in candidates:
            for each in (*candidate.violated, *candidate.unmeasured):
                assumption = each.assumption
                words[assumption.name] = f"{assumption.meaning}. The number: {assumption.measure}"
        if words:
            yield from ("What the words mean:", "")
        for name, meaning in words.items():
            yield from self._wrapped(f"{name}: {meaning}", "  ", "    ")

    def _wrapped(self, text: str, indent: str, hanging: str | None = None) -> list[str]:
        return textwrap.wrap(
            text,
            self.width,
            initial_indent=indent,
            subsequent_indent=" " * len(indent) if hanging is None else hanging,
            break_long_words=False,
            break_on_hyphens=False,
        )

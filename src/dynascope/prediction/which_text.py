"""Format theories and their measured assumptions as text for readers who do not know the papers."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from dynascope.theory.assumptions import SMALL_STEPS

if TYPE_CHECKING:
    from dynascope.prediction.candidate import Candidate, Measured

__all__ = ["theories_text"]

_HEADS = {
    "applies": "Theories that apply:",
    "almost": "Theories that almost apply, with the stated error:",
    "unknown": "Theories that apply if the assumptions marked ? hold (they cannot be measured here):",
    "no": "Theories that do not apply:",
}
_LARGE = 1e3  # larger values are not printed
_PLACE = "    "
_WORDS = {
    "jumps": "rapid drops in the loss between plateaus at small scale; at each jump, the network learns a feature",
    "levels": "the losses on the plateaus between jumps",
    "features": "the inputs, or combinations of inputs, that the network starts to use at a jump",
    "tangent kernel": "the neural tangent kernel (NTK): how much a training step on one sample changes the output of "
    "another. It changes when the network learns features, and is constant in lazy training",
}


def theories_text(
    candidates: Iterable[Candidate],
    *,
    width: int,
    command: Callable[[Candidate], str] | None = None,
) -> str:
    """Format the candidates in order, each with its predictions and accuracy, or with its violated assumptions.

    Args:
        candidates: The theories, the best first.
        width: Width in columns; commands are never wrapped.
        command: Returns the command line for a candidate, if there is one.

    Example:
        >>> from dynascope.prediction.which_theory import which
        >>> found = which(([[1.0], [-1.0]], [[2.0], [-2.0]]), "linear", scale=1e-8)
        >>> command = lambda each: f"$ dynascope predict … --theory {each.name}"
        >>> text = theories_text(found[:1], width=80, command=command)
        >>> print(text[: text.index("    more")] + text[text.index("    source") :])
        Theories that apply:
        <BLANKLINE>
          line
            gives  the weights, the slope of the function and the loss at any time
            type   exact; losses within 0.1 % of the initial loss
            cost   under a second
            source arXiv:2401.07085
            $ dynascope predict … --theory line
    """
    return "\n".join(_Page(width).lines(list(candidates), command)).rstrip()


@dataclasses.dataclass(frozen=True)
class _Page:
    """Formatted text of a given width."""

    width: int

    def lines(self, candidates: list[Candidate], command: Callable[[Candidate], str] | None) -> Iterator[str]:
        """Yield all lines."""
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
        """Yield the predictions of a theory, its accuracy, and its violated assumptions."""
        theory = candidate.theory
        rows = {"gives": theory.gives}
        if candidate.status != "no":
            how = "exact" if theory.exact else f"{theory.kind}"
            marks = ["!"] * bool(candidate.violated) + ["?"] * bool(candidate.unmeasured)
            if marks and not theory.staircase:
                how += f" up to the assumptions marked {' and '.join(marks)}"
            rows["type"] = "; ".join(filter(None, (how, candidate.error)))
            rows["cost"] = candidate.cost
        if theory.further and candidate.status != "no":
            rows["more"] = "; ".join(f"{name}: {gives}" for name, gives in theory.further.items())
        if theory.domain is not None:
            rows["source"] = theory.domain.reference
        for name, text in rows.items():
            yield from self._wrapped(text, f"{_PLACE}{name:<7}")
        if candidate.obstacle:
            yield from self._wrapped(candidate.obstacle, f"{_PLACE}! ")
        for each in candidate.violated:
            if each not in candidate.training:
                yield from self._violated(each, f"{_PLACE}! assumes ")
        for each in candidate.unmeasured:
            if each not in candidate.training:
                yield from self._unmeasured(each, f"{_PLACE}? assumes ")

    def _violated(self, measured: Measured, indent: str) -> Iterator[str]:
        """Yield a violated assumption with its measured value, its effect and the remedy."""
        assumption, value = measured.assumption, measured.value
        assert value is not None
        amount = f"{value:.3g}" if value <= _LARGE else f"over {_LARGE:g}"
        limits = f"measured {amount}, limit {assumption.limit:g}"
        if assumption.limit < assumption.almost < float("inf"):
            limits += f", approximate up to {assumption.almost:g}"
        remedy = assumption.remedy
        if assumption is SMALL_STEPS:
            remedy += f", by a factor of {value / assumption.limit:.2g}"
        hanging = " " * (len(indent) - len(indent.lstrip()) + 2)
        text = f"{assumption.name} ({limits}): {assumption.growth}. Remedy: {remedy}."
        yield from self._wrapped(text, indent, hanging)

    def _unmeasured(self, measured: Measured, indent: str) -> Iterator[str]:
        """Yield an assumption that could not be measured, with the effect of a violation."""
        assumption = measured.assumption
        hanging = " " * (len(indent) - len(indent.lstrip()) + 2)
        text = f"{assumption.name} (not measured): if it does not hold, {assumption.growth}."
        yield from self._wrapped(text, indent, hanging)

    def _nearest(self, candidates: list[Candidate]) -> Iterator[str]:
        """Suggest what to do if no theory applies."""
        if len(candidates) < 2 or candidates[0].status != "no":
            return
        first = candidates[0]
        broken = [each.assumption.remedy for each in first.violated if not each.almost]
        what = "; ".join(broken)
        how = f" To use it, {what}." if what else ""
        text = (
            f"No theory applies. The nearest is {first.name}.{how} "
            "Alternatively, train the network and measure it, as shown at the end."
        )
        yield from self._wrapped(text, "", "")
        yield ""

    def _meanings(self, candidates: list[Candidate]) -> Iterator[str]:
        """Explain the terms."""
        given = " ".join(candidate.theory.gives for candidate in candidates if not candidate.obstacle)
        words = {name: meaning for name, meaning in _WORDS.items() if name in given}
        for candidate in candidates:
            for each in (*candidate.violated, *candidate.unmeasured):
                assumption = each.assumption
                words[assumption.name] = f"{assumption.meaning}. Measured by: {assumption.measure}"
        if words:
            yield from ("Terms:", "")
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

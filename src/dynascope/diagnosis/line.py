"""One line of a diagnosis: a number measured in a run, compared with the threshold of a theory."""

from __future__ import annotations

import dataclasses

__all__ = ["Line"]


@dataclasses.dataclass(frozen=True)
class Line:
    """One line of a diagnosis.

    Attributes:
        topic: The question that the line answers, such as "stability".
        state: The answer in one to three words, such as "unstable"; "not measured" or "does not apply" if there is
            none.
        sentence: The answer in one or two sentences, with the number and the threshold.
        number: The measured number; None if there is none.
        threshold: Its threshold; None if there is none.
        theory: The theory with its domain, and its source.
        action: What to do, as an imperative sentence; empty if nothing should be done.
        weight: How telling the line is: 3 for a defect, 2 for a remarkable state, 1 for an ordinary one, and 0 if the
            line is omitted from the summary.
    """

    topic: str
    state: str
    sentence: str
    number: float | None = None
    threshold: float | None = None
    theory: str = ""
    action: str = ""
    weight: int = 1

    @property
    def is_answer(self) -> bool:
        """Whether the line answers its question."""
        return self.state not in ("not measured", "does not apply")

"""The line on the recorder: whether it could measure all that its probes require."""

from __future__ import annotations

from dynascope.diagnosis.line import Line
from dynascope.diagnosis.run_facts import RunFacts

__all__ = ["recorder_warnings"]

_TOPIC = "recorder"
_LISTED = 3


def recorder_warnings(run: RunFacts) -> Line:
    """Repeat the warnings of the recorder, which tell why questions have no answer.

    Example:
        >>> from dynascope.results import make_record
        >>> record = make_record({"loss": (["step"], [1.0])}, {"step": [0]})
        >>> recorder_warnings(RunFacts(record, warnings=["the probe 'curvature' is omitted"])).sentence
        "The recorder warned: the probe 'curvature' is omitted."
    """
    if not run.warnings:
        return Line(_TOPIC, "no warnings", "The recorder issued no warnings.", weight=0)
    listed = "; ".join(each.rstrip(".") for each in run.warnings[:_LISTED])
    more = len(run.warnings) - _LISTED
    sentence = f"The recorder warned: {listed}{f'; and {more} more' if more > 0 else ''}."
    return Line(_TOPIC, "warnings", sentence, float(len(run.warnings)), 0.0, weight=2)

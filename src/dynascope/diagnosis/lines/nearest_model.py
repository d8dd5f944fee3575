"""The solvable model that is nearest to the network and the data of a run, and which of its assumptions fail."""

from __future__ import annotations

import json
import math
from typing import Any

from dynascope.diagnosis.line import Line
from dynascope.diagnosis.run_facts import RunFacts
from dynascope.errors import InputError
from dynascope.prediction.candidate import Candidate
from dynascope.prediction.which_theory import which
from dynascope.results.numbers import rounded

__all__ = ["nearest_model", "solvable_model"]

_TOPIC = "solvable model"
_THEORY = "The theories of `dynascope.which`, whose assumptions are measured on the reference batch."


def solvable_model(
    inputs: Any, targets: Any, network: Any, *, learning_rate: float | None, batch_size: int | None, squared: bool
) -> str:
    """Find the theory that is nearest to a network and data, for the record of a run.

    Args:
        inputs: Inputs of the reference batch, shape (n, d).
        targets: Targets, or classes.
        network: The module with its initial weights.
        learning_rate: The learning rate; None for gradient flow.
        batch_size: The batch size; None for all samples.
        squared: Whether the loss is the squared loss, which all theories assume.

    Returns:
        A JSON object for `nearest_model`: the name of the theory, its status, the obstacle in the structure of the
        network, and the number, limit and remedy of each assumption that fails. It is empty if the network or the data
        cannot be read.
    """
    try:
        best = which((inputs, targets), network, learning_rate=learning_rate, batch_size=batch_size)[0]
    except (InputError, RuntimeError, IndexError):
        return ""
    return json.dumps(_as_plain(best) | {"squared": squared})


def nearest_model(run: RunFacts) -> Line:
    """Name the nearest solvable model, and which of its assumptions fails by how much."""
    text = run.record.attrs.get("solvable_model", "")
    if not text:
        sentence = "The nearest solvable model is not known: the network, or the reference batch, cannot be read."
        return Line(_TOPIC, "not measured", sentence, theory=_THEORY, weight=0)
    found = json.loads(text)
    name, failing = found["theory"], found["failing"]
    obstacle = found["obstacle"] or ("" if found["squared"] else "it assumes the squared loss")
    if obstacle:
        sentence = f"The nearest solvable model is {name}, which does not apply: {obstacle.rstrip('.')}."
        return Line(_TOPIC, "does not apply", sentence, theory=_THEORY, weight=1)
    if not failing:
        sentence = f"The solvable model {name} applies: all its assumptions hold."
        action = f'To predict the run, use `dynascope.predict(…, theory="{name}")`.'
        return Line(_TOPIC, "applies", sentence, theory=_THEORY, action=action, weight=2)
    worst = failing[0]
    others = len(failing) - 1
    more = f", as {'do' if others > 1 else 'does'} {others} of its other assumptions" if others else ""
    sentence = (
        f"The nearest solvable model is {name}, but its assumption “{worst['name']}” fails "
        f"({rounded(worst['value'], 2)}; at most {worst['limit']:g}){more}."
    )
    state = {"almost": "almost applies"}.get(found["status"], "fails")
    theory = f"{_THEORY} Measure of {worst['name']}: {worst['measure']}."
    action = f"To compare the run with {name}, {worst['remedy']}."
    return Line(_TOPIC, state, sentence, worst["value"], worst["limit"], theory, action, 1)


def _as_plain(candidate: Candidate) -> dict[str, Any]:
    failing = sorted(candidate.violated, key=lambda each: -(each.value or 0.0) / (each.assumption.almost or 1e-12))
    return {
        "theory": candidate.name,
        "status": candidate.status,
        "obstacle": candidate.obstacle,
        "failing": [
            {
                "name": each.assumption.name,
                "measure": each.assumption.measure,
                "value": each.value if math.isfinite(each.value or 0.0) else 1e300,
                "limit": each.assumption.limit,
                "remedy": each.assumption.remedy,
            }
            for each in failing
        ],
    }

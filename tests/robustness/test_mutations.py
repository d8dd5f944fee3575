"""Every argument of every public function, mutated: a right and finite answer or an error that says what to do."""

from __future__ import annotations

import importlib
import importlib.util
import warnings

import pytest
from documented import Member, members
from robustness.mutations import mutants
from robustness.outcomes import found_wrong

from dynascope.errors import InputError

ROOMS = ["comparison", "groups", "networks", "plot", "probes", "report", "results", "symmetry", "tasks", "theory"]
ROOMS += ["torch"] * (importlib.util.find_spec("torch") is not None)


def public() -> dict[str, Member]:
    found = {}
    for room in ROOMS:
        face = importlib.import_module(f"dynascope.{room}")
        for name, member in members(face).items():
            # One without an example has nothing that could be mutated.
            if ">>>" in member.doc and all(known.function is not member.function for known in found.values()):
                found[f"{room}.{name}"] = member
    return found


MEMBERS = public()


@pytest.fixture(params=MEMBERS.values(), ids=MEMBERS)
def member(request) -> Member:
    return request.param


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_types")
def test_a_mutated_argument_gives_a_right_answer_or_an_error_that_says_what_to_do(member, tmp_path, monkeypatch):
    assert member.calls, "the example does not call it"
    monkeypatch.chdir(tmp_path)
    call = member.calls[0]
    with warnings.catch_warnings(action="ignore"):
        try:
            valid = member(call)
        except InputError:
            valid = None  # the file of the example is gone
    wrong = [
        problem
        for name, value in member.arguments(call).items()
        if member.signature.parameters.get(name) is None
        or member.signature.parameters[name].kind is not member.signature.parameters[name].VAR_POSITIONAL
        for mutant in mutants(value)
        # How theory takes numbers of extreme size is asked in its own tests.
        if not (member.module.__name__.startswith("dynascope.theory") and mutant.kind.endswith(("huge", "tiny")))
        if (problem := found_wrong(member, call, name, mutant, valid))
    ]
    assert not wrong, "\n".join(wrong)

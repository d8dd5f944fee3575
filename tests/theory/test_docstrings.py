"""What the docstring of every public theory function must say; a function that a face re-exports takes part too."""

from __future__ import annotations

import inspect
import re
from typing import Any

import jax
import numpy as np
import pytest
from documented import Call, Member, is_floating, is_numeric, is_record, is_row, numbers, spoiled
from theory_functions import MEMBERS

from dynascope.errors import InputError


def mentioned(text: str) -> list[Member]:
    """The other functions that a text names."""
    names = {name.rpartition(".")[2] for name in re.findall(r"`([\w.]+)", text)}
    return [other for other in MEMBERS.values() if other.name.rpartition(".")[2] in names]


# Its parts.


def names_a_source(member: Member, seen: tuple[str, ...] = ()) -> bool:
    """Whether it cites a paper itself, or is made of a public function that does."""
    if re.search(r"arXiv|thesis|^References:", member.doc, re.MULTILINE):
        return True
    others = [other for other in mentioned(member.doc) if other.name not in seen]
    return any(names_a_source(other, (*seen, member.name)) for other in others)


def test_its_summary_is_one_sentence(member):
    summary = member.doc.partition("\n\n")[0]
    assert "\n" not in summary
    assert summary.endswith(".")
    assert len(summary.split()) >= 4


def test_its_docstring_explains_every_parameter_and_no_other(member):
    parameters = [name for name in member.signature.parameters if not name.startswith("_")]
    assert list(member.explained) == parameters


def test_its_docstring_says_what_it_returns(member):
    first = member.doc.split()[0]
    # A summary that is a noun phrase or a formula says what comes back; one that is an order does not.
    order = first.isalpha() and first.isascii() and first.istitle() and len(first) > 1
    assert "Returns" in member.sections or not order or first in NOUN_PHRASE


NOUN_PHRASE = {"A", "An", "The", "Each", "Exponents", "How", "Neurons", "Rate", "What", "When", "Where", "Whether"}


def test_its_docstring_says_what_it_refuses(member, call):
    # The exponents of a parametrisation, say, were checked when they were made.
    checked = member.signature.parameters.keys() - {name for name, value in call.arguments.items() if is_record(value)}
    assert "Raises" in member.sections or not checked


def test_its_docstring_names_a_source(member):
    assert names_a_source(member)


def test_its_example_calls_it(member):
    assert member.calls


# What it computes.

FORMULA = re.compile(r"[=≈≃∝←√Π∫∂∇⊗−]|Σ_|\+ \S+ [<>]")
# A search, a draw and a table have none: they say how they find what they give.
NO_FORMULA = {
    "grokking.grokking_delay": "the first record from which a curve holds its threshold",
    "groups.neurons_near_irreps": "random neurons, each near one irreducible representation",
    "modular.unexplained_fraction": "a table of five numbers",
    "regimes.phase_table": "a table of records that other functions make",
    "regimes.standard_parametrisations": "a table of records",
}


def test_its_docstring_has_a_formula_unless_it_computes_by_none(member):
    # Code, such as the name of an argument, is none.
    said = re.sub(r"`[^`]*`", "", member.sections[""] + member.sections.get("Returns", ""))
    assert bool(FORMULA.search(said)) == (member.name not in NO_FORMULA)
    assert len(said.split()) >= 12 or member.name not in NO_FORMULA


# In which shapes.

SHAPE = re.compile(
    r"\bshapes?\b|broadcast|\b(in|a|one sample a) row\b|\bin rows\b|\brows [([]|\b(axis|axes)\b|, a number\b"
    r"|\bone (number )?for (all|each|every)\b|\(\w+, \w+\)",
    re.IGNORECASE,
)


def explanation(member: Member, name: str, seen: tuple[Member, ...] = ()) -> str:
    """What it says of a parameter, with what that refers to: a parameter before it, or that of another function."""
    said, names = member.explained[name], list(member.explained)
    if re.search(r"\blikewise\b", said):
        # A choice among words is not what the next number is like.
        before = [other for other in names[: names.index(name)] if '"' not in member.explained[other]]
        said += explanation(member, before[-1], seen)
    if name.endswith("rate"):
        said += "".join(re.findall("rates broadcast", member.sections["Args"]))
    referring = (said if re.search(r"\bas\b", said, re.IGNORECASE) else "") + member.sections.get("Raises", "")
    seen = (*seen, member)
    others = [other for other in mentioned(referring) if other not in seen and name in other.explained]
    return said + "".join(explanation(other, name, seen) for other in others)


def takes_arrays(member: Member, name: str) -> bool:
    """Whether its annotation promises that, and not a number alone."""
    annotation = str(member.signature.parameters[name].annotation)
    return "Array" in annotation and "[ArrayLike, '']" not in annotation


def described(record: Any) -> dict[str, str]:
    """What the docstring of a record says of each part, and of all of them."""
    heading, _, attributes = (inspect.getdoc(type(record)) or "").partition("Attributes:\n")
    attributes = re.split(r"^\w+:$", attributes, flags=re.MULTILINE)[0]
    entries = re.split(r"^    (\w+):", attributes, flags=re.MULTILINE)
    return {name: heading + said for name, said in zip(entries[1::2], entries[2::2], strict=True)}


def silent_parts(result: Any) -> list[str]:
    """The arrays in records of which the record does not say the shape."""
    if isinstance(result, dict):
        return [name for part in result.values() for name in silent_parts(part)]
    if not is_record(result):
        return []
    said = described(result)
    held = {name: getattr(result, name) for name in said}
    return [
        name
        for name, part in held.items()
        if isinstance(part, np.ndarray | jax.Array) and part.ndim and not SHAPE.search(said[name])
    ]


def test_its_docstring_states_the_shape_of_every_array_that_it_takes(member):
    arrays = [name for name in member.explained if takes_arrays(member, name)]
    silent = [name for name in arrays if not SHAPE.search(explanation(member, name))]
    assert "broadcast" in member.sections[""] + member.sections.get("Returns", "") or silent == []


@pytest.mark.slow
def test_its_docstring_or_its_record_states_the_shape_of_every_array_that_it_gives(member, call):
    result = member(call)
    returns = member.sections.get("Returns", "")
    if re.search(r"\bshapes?\b", returns) or hasattr(result, "data_vars"):
        return  # what has labels names its dimensions
    assert silent_parts(result) == []
    array = re.match(r"(list\[)?(Float|Bool)\[.*(['\"].*\w|\.\.\.\])", str(member.signature.return_annotation))
    summary = member.doc.partition("\n\n")[0]
    assert not array or SHAPE.search(returns or summary) or "broadcast" in member.sections[""]


# In which units.

TIMES = {"duration", "log_times", "steps", "times"}
CLOCK = re.compile(r"\bflows?\b|\bdescen|\bsteps?\b|\bSGD\b|for each unit of time|learning rates", re.IGNORECASE)
AVERAGE = re.compile(r"½ ?(\[|E\b|‖|S²|Σ|P\()|\bE ?[\[(‖⟨]|\bE \w|1/\(2n\)|1/16 Σ|(mean|[Aa]veraged) over|unnormalised")
UNIT = re.compile(r"radian|\bnats\b|unit norm|norm one|‖θ‖ = 1|\bunits of\b")
OWN_UNITS = {
    "deep_modes.initialisation_exponents": "none, they are exponents of the width",
    "margins.class_differences": "those of the features",
    "margins.margin_shares": "none, they are shares of one",
    "noise.quartic_stationary_law": "those of the equation that it states",
    "regimes.phase": "none, they are exponents of the scaling parameter",
    "scaling_laws.fit": "those of the losses and of the resource, whatever they are",
    "scaling_laws.skill_integral": "none",
    "skills.parity_relu.fixed_point": "those of the strength of the target",
    "skills.parity_relu.network_outputs": "those of the weights",
    "staircase.overlap_time": "those of the equation that it states",
    "symmetry.damped_kernels": "those of the equation that it states",
}


def has_floats(value: Any) -> bool:
    return is_record(value) or is_row(value) or any(part.size for part in numbers(value))


def unsaid(member: Member, call: Call) -> list[str]:
    """What nothing is said of: by which clock its times run, or what its numbers are averages or multiples of."""
    said = " ".join("".join(member.sections.get(title, "") for title in ("", "Args", "Returns")).split())
    of_all = member.sections[""] + member.sections.get("Returns", "")
    arguments = member.arguments(call)
    times = [name for name in TIMES & member.explained.keys() if is_numeric(arguments[name])]
    found = [name for name in times if not CLOCK.search(of_all + explanation(member, name))]
    if re.search(r"(times?|steps|delay)$", member.name) and not CLOCK.search(said):
        found.append("what it gives")
    counts = not any(map(has_floats, arguments.values())) or not has_floats(member(call))
    declared = any(getattr(member.function, "units", {}).values())
    if not (counts or declared or any(pattern.search(said) for pattern in (CLOCK, AVERAGE, UNIT))):
        found.append("all numbers")
    return found


@pytest.mark.slow
def test_it_declares_its_units_or_its_docstring_says_them(member, call):
    assert unsaid(member, call) == [] or member.name in OWN_UNITS


@pytest.mark.slow
def test_units_of_their_own_are_those_of_which_nothing_is_said():
    assert [name for name in OWN_UNITS if unsaid(MEMBERS[name], MEMBERS[name].calls[0]) == []] == []


# From which domain.

DOMAIN = re.compile(
    r"[><≥≤≠]|\bat (least|most)\b|\bbetween\b|\b(above|below) (one|zero|the|[0-9])\b|\bfrom (zero|one|two|[0-9])"
    r"|\b(positive|whole|increasing|symmetric|orthogonal|orthonormal)\b|\bnot (all )?zero\b|\bmust be zero\b"
    r"|\beither\b|\bnumbers? of\b|\bmean zero\b|\bzero mean\b|\ball on one line\b|\bwith .*=",
    re.IGNORECASE,
)


def is_refused(member: Member, call: Call, name: str, value: Any) -> bool:
    """Whether −1 or 0 in its place, or in place of its first number, is refused by its name."""
    kind = int if is_numeric(value) and not is_floating(value) else float
    for bad in (-1, 0):
        try:
            member(call, **{name: spoiled(value, kind(bad))})
        except InputError as error:
            if str(error.argument).startswith(name):
                return True
    return False


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_its_docstring_says_of_every_number_that_it_refuses_from_where_it_comes(member, call):
    given = {name: value for name, value in member.arguments(call).items() if name in member.explained}
    silent = [
        name
        for name, value in given.items()
        if (is_numeric(value) or is_row(value)) and not DOMAIN.search(explanation(member, name))
    ]
    assert [name for name in silent if is_refused(member, call, name, given[name])] == []


def test_what_it_covers_or_its_docstring_states_a_domain(member):
    said = member.sections.get("Args", "") + member.sections.get("Raises", "")
    stated = DOMAIN.search(said) or "not finite" in said
    assert hasattr(member.function, "domain") or stated or not member.signature.parameters

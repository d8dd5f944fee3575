from __future__ import annotations

from dynascope.theory import assumptions
from dynascope.theory.assumptions import Assumption
from dynascope.theory.domain import find_domains

ALL = [each for each in vars(assumptions).values() if isinstance(each, Assumption)]


def test_every_assumption_says_what_it_is_and_what_to_do():
    for each in ALL:
        assert all((each.name, each.measure, each.growth, each.remedy))
        assert 0 <= each.limit <= each.almost


def test_names_tell_them_apart():
    assert len({each.name for each in ALL}) == len(ALL)


def test_theories_state_them_where_their_words_do():
    words = {
        "whitened inputs": assumptions.WHITE_INPUTS,
        "uncorrelated inputs": assumptions.UNCORRELATED_INPUTS,
        "inputs on a line": assumptions.INPUTS_ON_A_LINE,
        "orthogonal inputs": assumptions.ORTHOGONAL_SAMPLES,
    }
    rooms = ("balanced", "deep_modes", "line", "modes", "neuron", "relu_alignment", "transfer")
    stated = [domain for name, domain in find_domains().items() if name.split(".")[1] in rooms]
    found = [(domain, each) for domain in stated for word, each in words.items() if domain.data.startswith(word)]
    assert len(found) > 20
    assert all(each in domain.assumes for domain, each in found)

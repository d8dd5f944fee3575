from __future__ import annotations

import re

import jax
import pytest

from dynascope.errors import InputError
from dynascope.flows import GradientFlow, gradient_flow
from dynascope.networks import TwoLayer
from dynascope.tasks.parity.sparse_parity import SparseParity
from dynascope.tasks.stream import Stream


class Noise(Stream):
    name = "noise"

    def sample(self, key, samples, *, dtype=float):
        return jax.random.normal(key, (samples, 2), dtype), jax.random.normal(key, (samples, 1), dtype)


def test_a_stream_says_what_it_is():
    assert Noise().attributes() == {"task": "noise", "description": []}
    parity = SparseParity(skills=2, bits=6)
    assert parity.attributes()["task"] == "sparse parity"
    assert re.findall(r"\d+", parity.attributes()["description"][0])[:3] == ["2", "3", "6"]


def test_an_expectation_exists_where_it_is_said_to():
    assert SparseParity(bits=16).has_expectation
    assert SparseParity(bits=16).expectation().name == "sparse parity"
    assert not SparseParity(bits=17).has_expectation
    for stream, argument in ((SparseParity(bits=17), "bits"), (Noise(), "task")):
        with pytest.raises(InputError) as caught:
            stream.expectation()
        assert caught.value.argument == argument


@pytest.mark.parametrize(
    ("stream", "remedy"),
    [(Noise(), r"batch size\."), (SparseParity(skills=2, bits=6), r"batch size, or train on task\.expectation")],
)
def test_no_flow_descends_a_stream_as_a_whole(stream, remedy):
    with pytest.raises(InputError, match=remedy):
        gradient_flow(stream, TwoLayer(8, 4, 1), GradientFlow(duration=1.0))


@pytest.mark.slow
def test_a_stream_has_to_say_how_samples_are_drawn():
    with pytest.raises(TypeError, match="sample"):
        type("Empty", (Stream,), {})()

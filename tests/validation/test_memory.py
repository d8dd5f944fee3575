from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.networks import DeepDiagonal, DeepLinear, LinearAttention, TwoLayer
from dynascope.probes.class_moments import class_moments
from dynascope.validation import formatted_bytes, require_memory, require_room, require_unpacked
from dynascope.validation.memory import machine_memory

HUGE = 10**13  # of which no machine has as many bytes


@pytest.mark.parametrize(
    ("limit", "fits", "not_quite"), [("1000", 1000, 1001), ("2 kB", 2000, 2001), ("1.5GB", 1.5e9, 1.5e9 + 1)]
)
def test_what_may_be_unpacked_is_as_the_user_says(monkeypatch, limit, fits, not_quite):
    monkeypatch.setenv("DYNASCOPE_MEMORY", limit)
    require_unpacked(fits, "trees.npz")
    with pytest.raises(InputError, match=r"trees.npz takes .* when unpacked") as caught:
        require_unpacked(not_quite, "trees.npz", value="trees.npz")
    assert (caught.value.argument, caught.value.value) == ("path", "trees.npz")


@pytest.mark.parametrize("limit", ["much", "-1", "1e9", "nan"])
def test_a_limit_that_is_no_number_of_bytes_is_refused(monkeypatch, limit):
    monkeypatch.setenv("DYNASCOPE_MEMORY", limit)
    with pytest.raises(InputError, match="set it to an amount of memory"):
        require_unpacked(1, "trees.npz")


def test_without_a_limit_it_is_a_quarter_of_the_memory(monkeypatch):
    monkeypatch.delenv("DYNASCOPE_MEMORY", raising=False)
    require_unpacked(machine_memory() / 4, "trees.npz")
    with pytest.raises(InputError):
        require_unpacked(machine_memory() / 4 + 1, "trees.npz")
    require_memory(machine_memory(), "the network", argument="width", remedy="choose less")
    with pytest.raises(InputError, match=f"the network needs .* but only {formatted_bytes(machine_memory())}"):
        require_memory(machine_memory() + 1, "the network", argument="width", remedy="choose less")


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: DeepDiagonal(HUGE), "input_dimension"),
        (lambda: TwoLayer(3, HUGE, 1), "width"),
        (lambda: DeepLinear([3, HUGE, 1]), "widths"),
        (lambda: LinearAttention(3, HUGE), "heads"),
        (lambda: class_moments(np.ones((4, 2)), np.arange(4), classes=HUGE), "classes"),
    ],
)
def test_sizes_beyond_memory_are_rejected_with_the_bytes_they_would_need(make, argument):
    with pytest.raises(InputError, match=r"arrays of [\d.e+]+ GB") as refused:
        make()
    assert refused.value.argument == argument


def test_the_bytes_are_those_of_the_numbers():
    with pytest.raises(InputError, match=r"width is 10000000000000, which requires arrays of 2\.4e\+05 GB"):
        require_room(3 * HUGE, inputs=3, width=HUGE)

from __future__ import annotations

import time

import numpy as np
import pytest

from dynascope.arguments import require_memory
from dynascope.errors import InputError
from dynascope.networks import DeepDiagonal, DeepLinear, LinearAttention, TwoLayer
from dynascope.probes.class_moments import class_moments

HUGE = 10**13  # of which no machine has as many bytes


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
def test_what_cannot_fit_is_refused_at_once_with_the_bytes_it_would_need(make, argument):
    start = time.process_time()
    with pytest.raises(InputError, match=r"arrays of [\d.e+]+ GB would be needed") as refused:
        make()
    assert refused.value.argument == argument
    assert time.process_time() - start < 1


def test_the_bytes_are_those_of_the_numbers():
    with pytest.raises(InputError, match=r"width is 10000000000000, for which arrays of 2\.4e\+05 GB would be needed"):
        require_memory(3 * HUGE, inputs=3, width=HUGE)

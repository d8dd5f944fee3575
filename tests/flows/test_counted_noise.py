from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from dynascope.compilation import jit
from dynascope.flows.counted_noise import normal_noise, threefry


def words(*values):
    return tuple(np.uint32(each) for each in values)


def test_words_are_the_known_answers_of_threefry():
    # The published test vectors of Random123 for Threefry-2x32-20.
    known = [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ]
    compiled = jit(threefry)
    for key, counters, expected in known:
        assert tuple(int(each) for each in compiled(words(*key), *words(*counters))) == expected


def test_numbers_are_normal_and_independent_of_lane_and_step():
    lanes = np.arange(20_000, dtype=np.uint32)
    draw = jax.vmap(lambda key, step, lanes: jnp.stack(normal_noise(key, step, lanes)), in_axes=(None, 0, None))
    found = np.asarray(jit(draw)(words(1, 2), np.arange(4), lanes))
    assert stats.kstest(found.ravel(), "norm").pvalue > 1e-3
    # Of 28 pairs of rows, four deviations of the correlation of independent numbers.
    correlation = np.corrcoef(found.reshape(8, -1)) - np.eye(8)
    assert np.abs(correlation).max() < 4 / np.sqrt(20_000)
    assert np.abs(found).max() < 5.5

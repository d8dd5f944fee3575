from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dynascope.errors import InputError
from dynascope.studies.symmetry.symmetry_breaking.alignment import alignment

BIAS = np.full(8, 0.5)


def keys_of(seed, shift=0.0):
    """Isotropic keys with a random mean per head."""
    draw = np.random.default_rng(seed)
    return draw.normal(size=(2, 3, 20, 8)) + shift * draw.normal(size=(2, 3, 1, 8))


def test_cosines_are_the_means_over_the_tokens_of_the_class():
    keys, members = keys_of(0), np.arange(20) % 3 == 0
    chosen = [t for t in range(20) if members[t]]
    expected = np.empty((2, 3))
    for block, head in np.ndindex(2, 3):
        each = [keys[block, head, t] @ BIAS / np.linalg.norm(keys[block, head, t]) for t in chosen]
        expected[block, head] = np.mean(each) / np.linalg.norm(BIAS)
    found = alignment(keys, BIAS, members)
    np.testing.assert_allclose(found.cosines, expected, rtol=1e-12)
    assert found.largest == np.abs(found.cosines).max()


@pytest.mark.parametrize("sign", [1, -1])
def test_one_aligned_head_among_many_is_found(sign):
    keys = keys_of(1)
    assert alignment(keys, BIAS, np.ones(20, bool)).p_value > 0.05
    keys[1, 2] += 2 * sign * BIAS
    found = alignment(keys, BIAS, np.ones(20, bool))
    assert np.unravel_index(np.abs(found.cosines).argmax(), (2, 3)) == (1, 2)
    assert found.p_value == pytest.approx(1 / 1001)  # no random direction reaches it
    assert found.excess > 0.3
    assert found.largest > found.quantile


@pytest.mark.parametrize("heads", ["independent", "equal"])
def test_p_values_are_uniform_without_alignment(heads):
    values = []
    for seed in range(300):
        keys = keys_of(seed, shift=1.0)
        if heads == "equal":
            keys = np.broadcast_to(keys[:1, :1], keys.shape)
        values.append(alignment(keys, BIAS, np.ones(20, bool), directions=199, seed=1000 + seed).p_value)
    # A test that ignored the maximum over six heads would reject 26 % of the independent cases at 5 %.
    assert stats.kstest(values, "uniform").pvalue > 1e-3
    assert np.mean(np.array(values) <= 0.05) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 300)


def test_the_null_agrees_with_the_distribution_of_a_coordinate_of_a_random_direction():
    # For one token and one head, cos² has the distribution Beta(1/2, (d − 1)/2).
    key = np.eye(8)[None, None, :1]
    found = alignment(key, BIAS, np.ones(1, bool), directions=20_000)
    squared = stats.beta(0.5, 3.5)
    assert found.quantile == pytest.approx(np.sqrt(squared.ppf(0.95)), abs=0.01)
    assert found.largest == pytest.approx(1 / np.sqrt(8))
    assert found.p_value == pytest.approx(squared.sf(1 / 8), abs=4 * 0.5 / np.sqrt(20_000))


def test_lengths_of_keys_and_bias_do_not_matter():
    keys, members = keys_of(2), np.ones(20, bool)
    scales = np.random.default_rng(3).uniform(0.1, 10, size=(2, 3, 20, 1))
    one, other = alignment(keys, BIAS, members), alignment(scales * keys, 7 * BIAS, members)
    np.testing.assert_allclose(other.cosines, one.cosines, rtol=1e-10, atol=1e-14)
    assert other.p_value == one.p_value


def test_in_one_dimension_nothing_can_be_concluded():
    keys = np.random.default_rng(0).normal(size=(2, 2, 30, 1))
    assert alignment(keys, [3.0], np.ones(30, bool)).p_value == 1


BAD = [
    ({"keys": np.ones((3, 20, 8))}, "keys"),
    ({"keys": np.zeros((2, 3, 20, 8))}, "keys"),
    ({"direction": np.ones(7)}, "direction"),
    ({"direction": np.zeros(8)}, "direction"),
    ({"members": np.zeros(20, bool)}, "members"),
    ({"members": np.ones(19, bool)}, "members"),
    ({"members": np.ones(20, int)}, "members"),
    ({"directions": 0}, "directions"),
]


@pytest.mark.parametrize(("bad", "argument"), BAD)
def test_bad_arguments_are_named(bad, argument):
    with pytest.raises(InputError) as error:
        alignment(**{"keys": keys_of(0), "direction": BIAS, "members": np.ones(20, bool)} | bad)
    assert error.value.argument == argument

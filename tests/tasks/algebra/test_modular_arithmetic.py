from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.tasks.algebra.modular_addition import modular_addition
from dynascope.tasks.algebra.modular_arithmetic import ModularArithmetic

operations = st.sampled_from(["addition", "subtraction", "multiplication", "division"])
primes = st.sampled_from([3, 5, 7, 11, 13, 23])
fractions = st.floats(0.35, 0.65)
seeds = st.integers(0, 2**31)


@given(operations, primes, fractions, seeds)
def test_each_result_satisfies_its_equation(operation, p, fraction, seed):
    table = ModularArithmetic(operation, p, train_fraction=fraction, seed=seed)
    for (a, b), c in zip(table.pairs.tolist(), table.results.tolist(), strict=True):
        assert 0 <= c < p
        missing = {"addition": a + b - c, "subtraction": b + c - a, "multiplication": a * b - c, "division": b * c - a}
        assert missing[operation] % p == 0


@given(operations, primes, fractions, seeds)
def test_train_and_test_are_disjoint_cover_all_and_have_the_right_sizes(operation, p, fraction, seed):
    table = ModularArithmetic(operation, p, train_fraction=fraction, seed=seed)
    count = p * (p - 1) if operation == "division" else p * p
    assert table.train.samples == round(fraction * count)
    rows = np.concatenate([table.train.inputs, table.test.inputs])
    assert len(np.unique(rows, axis=0)) == len(rows) == count
    assert not np.any(table.test.inputs[:, p]) or operation != "division"


@given(operations, primes, seeds)
def test_inputs_and_targets_are_the_one_hot_pairs_and_results(operation, p, seed):
    table = ModularArithmetic(operation, p, train_fraction=0.5, seed=seed)
    for task, kept in ((table.train, table.trained), (table.test, ~table.trained)):
        halves = task.inputs.reshape(-1, 2, p)
        np.testing.assert_array_equal(halves.sum(axis=2), 1)
        np.testing.assert_array_equal(halves.argmax(axis=2), table.pairs[kept])
        np.testing.assert_array_equal(task.targets.sum(axis=1), 1)
        np.testing.assert_array_equal(task.targets.argmax(axis=1), table.results[kept])


@given(st.sampled_from(["addition", "multiplication"]), st.integers(4, 20), fractions, seeds)
def test_a_symmetric_split_keeps_turned_pairs_together(operation, p, fraction, seed):
    table = ModularArithmetic(operation, p, train_fraction=fraction, symmetric=True, seed=seed)
    square = table.trained.reshape(p, p)
    np.testing.assert_array_equal(square, square.T)
    missing = round(fraction * p * p) - table.train.samples
    assert missing in (0, 1)
    assert missing == 0 or np.all(np.diag(square))


def test_a_plain_split_takes_each_pair_equally_often():
    p, draws = 5, 400
    taken = np.mean([ModularArithmetic("addition", p, 0.4, seed=seed).trained for seed in range(draws)], axis=0)
    # Five standard errors of a proportion, over 25 pairs.
    assert np.abs(taken - 0.4).max() < 5 * np.sqrt(0.4 * 0.6 / draws)


def test_addition_is_that_of_all_pairs():
    table, all_pairs = ModularArithmetic("addition", 6, train_fraction=0.5), modular_addition(6)
    np.testing.assert_array_equal(table.train.inputs, all_pairs.inputs[table.trained])
    np.testing.assert_array_equal(table.test.targets, all_pairs.targets[~table.trained])


def test_a_product_with_zero_is_kept_and_a_quotient_by_zero_is_not():
    product = ModularArithmetic("multiplication", 7, train_fraction=0.5)
    assert np.sum(product.results == 0) == 2 * 7 - 1
    quotient = ModularArithmetic("division", 7, train_fraction=0.5)
    assert quotient.pairs[:, 1].min() == 1
    np.testing.assert_array_equal(np.bincount(quotient.results), 6)


def test_the_seed_gives_the_split():
    splits = [ModularArithmetic("division", 11, train_fraction=0.6, seed=seed).trained for seed in (0, 0, 1)]
    np.testing.assert_array_equal(splits[0], splits[1])
    assert np.any(splits[0] != splits[2])


@pytest.mark.parametrize(
    ("fields", "argument"),
    [
        ({"operation": "power"}, "operation"),
        ({"p": 2}, "p"),
        ({"p": 257}, "p"),
        ({"p": 5.5}, "p"),
        ({"p": 9}, "p"),
        ({"train_fraction": 0.0}, "train_fraction"),
        ({"train_fraction": 1.0}, "train_fraction"),
        ({"train_fraction": float("nan")}, "train_fraction"),
        ({"train_fraction": 0.01}, "train_fraction"),
        ({"symmetric": True}, "symmetric"),
        ({"seed": -1}, "seed"),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_bad_input_is_named(fields, argument):
    with pytest.raises(InputError) as error:
        ModularArithmetic(**{"operation": "division", "p": 5, "train_fraction": 0.5, **fields})
    assert error.value.argument == argument


@pytest.mark.parametrize("operation", ["addition", "subtraction", "multiplication"])
def test_only_division_needs_a_prime(operation):
    assert ModularArithmetic(operation, 9, train_fraction=0.5).train.samples == 40

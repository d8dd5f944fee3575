from __future__ import annotations

from fractions import Fraction

import numpy as np

from dynascope.symmetry.exponents import Exponents


def test_unknowns_that_are_tied_are_those_that_entered_first():
    solver = Exponents()
    old, new = solver.fresh((3,)), solver.fresh((3,))
    solver.vanish(solver.combined([(1, old), (-2, new)]))
    assert [solver.expression(int(each)) for each in new] == [{unknown: Fraction(1, 2)} for unknown in range(3)]


def test_chains_of_ties_are_solved():
    solver = Exponents()
    each = solver.fresh((4,))
    for one, other in ((2, 3), (1, 2), (0, 1)):
        solver.vanish(solver.combined([(1, each[one : one + 1]), (-1, each[other : other + 1])]))
    assert [solver.expression(int(number)) for number in each] == [{0: Fraction(1)}] * 4
    solver.vanish(each[3:])
    assert [solver.expression(int(number)) for number in each] == [{}] * 4


def test_a_sum_of_functions_of_different_indices_vanishes_where_they_are_constants():
    solver = Exponents()
    rows, columns = solver.fresh((3, 1)), solver.fresh((1, 2))
    solver.sum_vanishes([(1, rows), (1, columns)])
    values = solver.combined([(1, rows), (1, columns)])
    assert [solver.expression(int(each)) for each in np.unique(values)] == [{}]
    assert len({tuple(solver.expression(int(each)).items()) for each in rows.ravel()}) == 1


def test_terms_that_share_an_index_are_merged():
    solver = Exponents()
    both, one = solver.fresh((2, 3)), solver.fresh((2, 1))
    assert [each.shape for each in solver.merged([(1, both), (1, one)])] == [(2, 3)]
    assert sorted(each.shape for each in solver.merged([(1, one), (1, solver.fresh((1, 3)))])) == [(1, 3), (2, 1)]


def test_unknowns_that_last_stay_where_they_are_tied_to_older_ones():
    solver = Exponents()
    usual, lasting = solver.fresh((2,)), solver.fresh((1,), lasting=True)
    solver.vanish(solver.combined([(1, usual), (-1, lasting)]))
    assert [solver.expression(int(each)) for each in usual] == [{-1: Fraction(1)}] * 2

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from dynascope.errors import InputError
from dynascope.theory.scaling_laws import JointLaw, fit_joint, plan

LAW = JointLaw(1.69, 406.4, 0.34, 410.7, 0.28)
N, D = np.geomspace(1e6, 1e9, 6), np.geomspace(1e8, 1e11, 6)
CLEAN = LAW.loss(N[:, None], D)
INTERVALS = [f"{name}_interval" for name in JointLaw._fields]


def noisy(seed, scatter=0.01):
    return CLEAN * np.exp(scatter * np.random.default_rng(seed).normal(size=CLEAN.shape))


@pytest.fixture(scope="module")
def found():
    return fit_joint(N, D, noisy(1))


@pytest.mark.parametrize(
    "law",
    [LAW, JointLaw(0.0, 3.0, 0.2, 50.0, 0.6), JointLaw(2e-3, 0.3, 1.2, 7.0, 0.15)],
    ids=["usual", "none", "other"],
)
def test_a_law_without_noise_is_found(law):
    n, d = np.geomspace(10, 1e4, 6)[:, None], np.geomspace(30, 1e5, 7)
    found = fit_joint(n, d, law.loss(n, d))
    # A flat minimum: sums of squares known to 1e-14 tell where they are least to about 1e-5.
    np.testing.assert_allclose(found.law.loss(n, d), law.loss(n, d), rtol=1e-7)
    np.testing.assert_allclose(found.law[1:], law[1:], rtol=1e-3)


def test_units_of_loss_parameters_and_data_do_not_matter(found):
    other = fit_joint(1e-6 * N, 1e10 * D, 1e-9 * noisy(1))
    np.testing.assert_allclose(other.law.floor, 1e-9 * found.law.floor, rtol=1e-4)
    np.testing.assert_allclose(other.parameters_exponent_interval, found.parameters_exponent_interval, rtol=1e-3)
    best, same = found.split_intervals(1e22), other.split_intervals(1e22 * 1e4)
    np.testing.assert_allclose(same.parameters, 1e-6 * np.array(best.parameters), rtol=1e-2)


def test_tables_frames_and_lists_of_runs_are_the_same(found):
    losses = noisy(1)
    n, d = (each.ravel() for each in np.meshgrid(N, D, indexing="ij"))
    runs = pd.DataFrame({"N": n, "D": d, "loss": losses.ravel()}).sample(frac=1, random_state=0)
    others = [
        fit_joint(runs["N"], runs["D"], runs["loss"]),
        fit_joint(N[:, None].tolist(), D.tolist(), losses.tolist()),
        fit_joint(N, D, pd.DataFrame(losses, index=N, columns=D)),
    ]
    for each in others:
        np.testing.assert_allclose(each.law, found.law, rtol=1e-4)


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say():
    draws, held = 60, np.zeros(8)
    best = LAW.split(1e24)
    for seed in range(draws):
        found = fit_joint(N, D, noisy(seed))
        ends, further = found.split_intervals(1e24), found.loss(1e11, 1e13)
        pairs = [(getattr(found, name), truth) for name, truth in zip(INTERVALS, LAW, strict=True)]
        pairs += [(ends.parameters, best.parameters), (ends.loss, best.loss)]
        run = LAW.loss(1e11, 1e13) * np.exp(0.01 * np.random.default_rng(-seed - 1 + 10**6).normal())
        held += [low <= truth <= high for (low, high), truth in [*pairs, (further[1:], run)]]
    # 57 of 60 with three deviations of 1.7.
    assert np.all(held > 51), held


def test_single_bad_runs_hardly_matter(found):
    spoilt = noisy(1)
    spoilt[2, 3] *= 2
    other = fit_joint(N, D, spoilt)
    low, high = found.parameters_exponent_interval
    assert low < other.law.parameters_exponent < high
    assert other.scatter < 1.3 * found.scatter


def test_what_is_asked_farther_away_is_known_less(found):
    widths = [np.log(told.high / told.low) for told in (found.loss(1e9, 1e11), found.loss(1e11, 1e13))]
    assert widths[0] < widths[1]
    told = found.loss(N[:, None], D)
    assert told.loss.shape == told.low.shape == CLEAN.shape
    assert np.all((told.low < told.loss) & (told.loss < told.high))
    ends = found.split_intervals([1e20, 1e24])
    assert np.all(np.diff(np.log(ends.parameters[1] / ends.parameters[0])) > 0)
    best = found.split([1e20, 1e24])
    for (low, high), value in zip(ends[:3], best[:3], strict=True):
        assert np.all((low < value) & (value < high))


def test_runs_that_keep_data_and_parameters_in_proportion_tell_no_term_and_say_so():
    # With as many as these two terms are one and the same to rounding, wherever they have the same exponent.
    n = np.geomspace(1e6, 1e9, 25)
    losses = LAW.loss(n, 20 * n) * np.exp(0.01 * np.random.default_rng(1).normal(size=25))
    with pytest.warns(UserWarning, match="vary together"):
        found = fit_joint(n, 20 * n, losses)
    assert found.unclear
    assert 0 in (found.parameters_exponent_interval[0], found.data_exponent_interval[0])


def test_losses_that_tell_all_warn_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit_joint(N, D, noisy(3)).unclear == ()


def test_a_floor_of_which_nothing_is_known_is_warned_of():
    n, d = np.geomspace(1e6, 1e7, 5), np.geomspace(1e8, 1e9, 5)
    losses = JointLaw(0.1, 406.4, 0.34, 410.7, 0.28).loss(n[:, None], d)
    with pytest.warns(UserWarning, match="do not determine the floor"):
        fit_joint(n, d, losses * np.exp(0.02 * np.random.default_rng(0).normal(size=losses.shape)))


def test_a_plan_is_its_split(found):
    best, planned = found.split([1e20, 1e22]), plan([1e20, 1e22], joint=found, cost=6.0)
    np.testing.assert_allclose([planned.neurons, planned.time, planned.loss], [best.parameters, best.data, best.loss])
    excess = np.log(planned.loss - found.law.floor)
    np.testing.assert_allclose(-np.diff(excess), planned.loss_exponent * np.log(100), rtol=1e-9)
    np.testing.assert_allclose(plan(1e20, joint=found.law, cost=6.0).neurons, best.parameters[0])


def test_what_is_printed_fits_a_terminal(found):
    lines = repr(found).splitlines()
    assert len(lines) == 7
    assert max(map(len, lines)) < 80


@pytest.mark.parametrize(
    ("argument", "arguments"),
    [
        ("losses", (N[:7], D[:7], CLEAN[0, :7])),
        ("losses", (N, D, -CLEAN)),
        ("losses", (N, D, np.where(CLEAN > 3, np.nan, CLEAN))),
        ("parameters", (N[:5], D, CLEAN)),
        ("data", (N[:, None], D[:4], CLEAN)),
        ("parameters", (np.full(6, 1e6), D, CLEAN)),
        ("data", (N, D[[0, 0, 0, 1, 1, 1]], CLEAN)),
        ("parameters", (0 * N, D, CLEAN)),
    ],
)
def test_bad_input_is_refused_by_name(argument, arguments):
    with pytest.raises(InputError) as refusal:
        fit_joint(*arguments)
    assert refusal.value.argument == argument

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

from dynascope.errors import InputError
from dynascope.studies import find_study

DiagonalStaircase = find_study("diagonal-staircase")


def drawn(seed: int):
    draw = np.random.default_rng(seed)
    inputs = DiagonalStaircase.tiny["inputs"]
    return DiagonalStaircase(
        samples=int(draw.integers(20, 100)),
        inputs=inputs,
        relevant=int(draw.integers(1, inputs + 1)),
        correlation=float(draw.uniform(-0.3, 0.6)),
        noise=float(draw.choice([0.0, 0.1])),
        scale=10.0 ** -int(draw.integers(8, 20)),
        seed=seed,
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0])
def test_theory_and_experiment_agree_at_random_fields(seed):
    tree = drawn(seed).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    assert not tree.predicted["slow"].all()


@pytest.mark.parametrize("relevant", [1, 3, 6])
def test_without_noise_the_last_plateau_is_the_map_behind_the_data(relevant):
    study = DiagonalStaircase(samples=40, inputs=6, relevant=relevant, noise=0.0, seed=relevant)
    found = study.predict()["coefficient"][-1].to_numpy()
    sizes = np.sort(np.abs(found))[::-1]
    # Strengths halve from one relevant input to the next.
    np.testing.assert_allclose(sizes[:relevant], 2.0 ** -np.arange(relevant), rtol=1e-9)
    np.testing.assert_allclose(sizes[relevant:], 0.0, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_with_fewer_samples_than_inputs_the_path_ends_at_the_interpolator_of_smallest_norm(seed):
    study = DiagonalStaircase(samples=5, inputs=9, relevant=3, correlation=0.2, seed=seed)
    predicted = study.predict()
    found = predicted["coefficient"][-1].to_numpy()
    task = study._setup.task
    # min Σ (b⁺ + b⁻) such that x (b⁺ − b⁻) = y, as a linear program.
    program = scipy.optimize.linprog(
        np.ones(18), A_eq=np.hstack([task.inputs, -task.inputs]), b_eq=task.targets[:, 0], bounds=(0, None)
    )
    assert np.abs(found).sum() == pytest.approx(program.fun, rel=1e-8)
    np.testing.assert_allclose(task.inputs @ found, task.targets[:, 0], atol=1e-8)
    assert float(predicted["loss_after"][-1]) < 1e-12


@pytest.mark.slow
def test_training_ends_where_the_path_ends():
    study = DiagonalStaircase(**DiagonalStaircase.tiny)
    observed = study.observe()
    # The data has no noise, so the path ends at zero.
    assert float(observed["loss"][-1]) < 1e-4 * float(observed["loss"][0])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("scale", bad) for bad in (1.0, 2.0, 0.0, -1.0, np.nan, np.inf)),
        *(("relevant", bad) for bad in (0, 4, -1)),
        *(("noise", bad) for bad in (-1.0, np.nan)),
        *(("samples", bad) for bad in (1, 0)),
    ],
)
def test_a_field_out_of_range_is_refused_by_name_before_anything_is_trained(monkeypatch, field, value):
    monkeypatch.setattr("dynascope.observe", lambda *_, **__: pytest.fail("it was trained"))
    with pytest.raises(InputError) as refusal:
        DiagonalStaircase(**DiagonalStaircase.tiny | {field: value}).run()
    assert refusal.value.argument == field


@pytest.mark.parametrize("correlation", [1.0, 1.5, np.nan])
def test_inputs_that_cannot_be_told_apart_are_refused(correlation):
    with pytest.raises(InputError):
        DiagonalStaircase(correlation=correlation).run()

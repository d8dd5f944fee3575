from __future__ import annotations

import jax
import numpy as np
import pytest

from dynascope.errors import DivergenceError
from dynascope.studies.regimes.width_phases.networks import drawn_networks
from dynascope.studies.regimes.width_phases.wide_run import solved_on_line, trained_on_line, trained_to_half
from dynascope.tasks import Task
from dynascope.theory.regimes.phases import standard_parametrisations

POSITION = np.array([[1.0], [-1.0]])
LINE = Task(POSITION * [0.6, 0.8], 1.5 * POSITION)


def drawn(name, kappa=64.0, **options):
    entry = standard_parametrisations()[name]
    widths = {"fixed_width": 16, "widest": 65}
    return drawn_networks(entry, kappa, (2, 1), range(3), activation="linear", **widths, **options)


@pytest.mark.slow
def test_networks_on_a_line_do_what_is_known_exactly():
    start = drawn("NTK", direction=LINE.inputs[0])
    with jax.enable_x64(True):
        found, exact = trained_on_line(start, LINE), solved_on_line(start, LINE)
    for one, other in zip(found, exact, strict=True):
        # The solver keeps each step within 1e-9, of which a small change has fewer digits.
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-12)


@pytest.mark.slow
def test_half_of_a_task_is_learned_or_the_run_is_refused():
    with jax.enable_x64(True):
        run = trained_to_half(drawn("NTK"), LINE, 2, 1e-6, name="NTK")
        # Where the solver stops, after the step in which half was learned.
        assert np.all(run.loss <= LINE.target_power / 4)
        assert np.all(run.learning_speed > 0)
        impossible = Task(LINE.inputs, np.abs(LINE.targets))
        with pytest.raises(DivergenceError, match="NTK at 64 did not learn half of"):
            trained_to_half(drawn("NTK"), impossible, 2, 1e-2, name="NTK at 64")


def test_all_networks_are_padded_to_one_width_and_stratified_where_that_is_asked_for():
    start = drawn("lazy", direction=LINE.inputs[0])
    first, second = start.layers()
    assert first.shape == (3, 2, 65)
    # At zero output the layers do not overlap; of a fixed width sixteen neurons have weights.
    np.testing.assert_allclose(np.einsum("d,sdh,shc->s", LINE.inputs[0], first, second), 0, atol=1e-12)
    assert np.count_nonzero(np.any(first != 0, axis=(0, 1))) == 16

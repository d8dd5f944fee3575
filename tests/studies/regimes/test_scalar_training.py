from __future__ import annotations

import jax
import numpy as np

from dynascope.studies.regimes.lazy_rich_features.richness import richer_settings
from dynascope.studies.regimes.scalar_training import final_growth
from dynascope.theory.scalar_networks.scalar import Setting, scalar_limit


def test_growth_golden():
    settings = richer_settings(4, 3.0, 10.0)
    found = np.exp(final_growth(settings.values()))
    # Golden: γ₊ = 2, ten times the target, or a tenth of the output, or 1/√10 of the weights.
    np.testing.assert_allclose(found[:4], [2.0, *3 * [15.066372975211]], rtol=1e-8)
    # Weights times 0.2, which is a factor of 25.
    small = richer_settings(4, 3.0, 25.0)["small weights"]
    np.testing.assert_allclose(np.exp(final_growth([small])), 37.526647730625, rtol=1e-8)


def test_wide_networks_with_outputs_over_the_root_of_their_width_become_lazy():
    growth = np.array(final_growth(list(richer_settings(4, 3.0, 10.0).values())[4:]))
    # ln γ₊ = arsinh(S/√p), to leading order S over the root of the width.
    np.testing.assert_allclose(growth, np.arcsinh(3.0 / np.sqrt([4, 16, 64])), rtol=1e-8)


def test_a_network_with_any_weights_grows_as_predicted():
    draw = np.random.default_rng(1)
    setting = Setting(1.5, draw.normal(size=5), draw.normal(size=5), 0.7, 1.3)
    with jax.enable_x64(True):
        expected = scalar_limit(setting).log_growth
    np.testing.assert_allclose(final_growth([setting]), [expected], rtol=1e-7)


def test_a_start_far_below_its_target_is_trained_to_the_end():
    setting = richer_settings(4, 3.0, 1e8)["small weights"]
    with jax.enable_x64(True):
        expected = scalar_limit(setting).log_growth
    np.testing.assert_allclose(final_growth([setting]), [expected], rtol=1e-7)

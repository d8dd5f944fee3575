from __future__ import annotations

import numpy as np
import pytest

from dynascope.studies.features.neural_collapse.free_features import train_free_features


@pytest.mark.slow
def test_unconstrained_features_collapse_to_their_class_means():
    times = np.array([0.0, 5.0, 50.0, 200.0])
    found = train_free_features([2, 2], 3, (0.1, 0.1), (0.1, 0.1), times, starts=2, seed=0)
    np.testing.assert_array_equal(found["time"], times[:-1])
    assert np.all(np.diff(found["loss"]) < 0)
    # Samples differ within classes at a random initialisation; the loss does not see the remaining differences.
    dimensions, share = found["between_class_share"]
    assert dimensions == ("start", "time")
    assert np.all(found["end_between_class_share"][1] > share[:, 0])
    # The Gram matrices of the means and of the classifier have the same eigenvectors.
    means, classifier = (found[name][1] for name in ("end_class_mean_gram", "end_classifier_gram"))
    np.testing.assert_allclose(means @ classifier, classifier @ means, atol=1e-6)

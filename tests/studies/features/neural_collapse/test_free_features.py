from __future__ import annotations

import numpy as np
import pytest

from dynascope.studies.features.neural_collapse.free_features import train_free_features


@pytest.mark.slow
def test_free_features_collapse_to_the_means_of_their_classes():
    times = np.array([0.0, 5.0, 50.0, 200.0])
    found = train_free_features([2, 2], 3, (0.1, 0.1), (0.1, 0.1), times, starts=2, seed=0)
    np.testing.assert_array_equal(found["time"], times[:-1])
    assert np.all(np.diff(found["loss"]) < 0)
    # At random starts samples differ within classes; once trained, what is left of that is what the loss never sees.
    dimensions, share = found["between_class_share"]
    assert dimensions == ("start", "time")
    assert np.all(found["end_between_class_share"][1] > share[:, 0])
    # The classes are told apart alike: Grams of means and of the classifier have the same axes.
    means, classifier = (found[name][1] for name in ("end_class_mean_gram", "end_classifier_gram"))
    np.testing.assert_allclose(means @ classifier, classifier @ means, atol=1e-6)

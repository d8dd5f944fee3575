import numpy as np

from dynascope.studies.features.relabelled_digits import LABELS, relabelled_digits


def test_the_share_of_random_labels_matches_their_name():
    true, some, all_random, numbers = (relabelled_digits(kind, 800, seed=0) for kind in LABELS)
    changed = [np.mean(each.labels != true.labels) for each in (some, all_random)]
    # One in ten random labels is the true one; three standard errors of a share of 80 and of 800.
    np.testing.assert_allclose(changed, [0.09, 0.9], atol=0.035)
    np.testing.assert_array_equal(numbers.labels, true.labels)
    np.testing.assert_array_equal(np.round(numbers.targets[:, 0] * 8.25**0.5 + 4.5), true.labels)
    for each in (some, all_random, numbers):
        np.testing.assert_array_equal(each.inputs, true.inputs)
        np.testing.assert_array_equal(each.held_out, true.held_out)

import numpy as np

from dynascope.studies.features.learnability.finite_samples import asymptotic_error, unfitted_share
from dynascope.theory.features import kernel_regression_error

RHO, TARGET = np.arange(1.0, 31) ** -1.5, np.arange(1.0, 31) ** -0.5


def test_only_a_ridge_leaves_labels_unfitted():
    found = kernel_regression_error(RHO, TARGET, np.array([10, 20]), ridge=100.0)
    assert 0.9 < unfitted_share(found, [10, 20], 100.0) < 1
    without = kernel_regression_error(RHO, TARGET, np.array([10, 20]))
    assert unfitted_share(without, [10, 20], 0.0) == 0
    # Twenty samples and few weak modes leave less unfitted than ten samples do.
    assert asymptotic_error(without, [10, 20]) > asymptotic_error(found, [10, 20]) > 1 / 10 - 1e-3

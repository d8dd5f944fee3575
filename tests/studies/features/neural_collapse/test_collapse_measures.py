import numpy as np

from dynascope.studies.features.neural_collapse.collapse_measures import classifier_collapse


def test_a_regression_selects_the_nearest_level():
    draw, levels = np.random.default_rng(0), (np.arange(10) - 4.5) / 8.25**0.5
    labels, held_out = (np.concatenate([np.arange(10), draw.integers(10, size=40)]) for _ in range(2))
    h, classifier, bias = draw.normal(size=(100, 3)), draw.normal(size=(3, 1)), draw.normal(size=1)
    found = classifier_collapse(h, classifier, bias, labels=labels, held_out=held_out, levels=levels)
    nearest = np.argmin(np.abs(h @ classifier + bias - levels), axis=1)
    assert found["accuracy"] == np.mean(nearest[:50] == labels)
    assert found["test_accuracy"] == np.mean(nearest[50:] == held_out)

from __future__ import annotations

import numpy as np
import pytest
from sklearn import datasets
from sklearn.utils import Bunch

from dynascope.errors import InputError
from dynascope.tasks.data.sklearn_data import BunchParts, is_bunch


@pytest.mark.parametrize("frames", [True, False])
def test_classes_and_inputs_have_the_names_of_the_data_set(frames):
    parts = BunchParts.of(datasets.load_iris(as_frame=frames))
    assert parts.name == "iris"
    assert next(iter(parts.inputs)) == "sepal length (cm)"
    assert sorted(set(parts.targets["target"].values)) == ["setosa", "versicolor", "virginica"]
    assert parts.image_shape is None


def test_images_keep_their_shape():
    parts = BunchParts.of(datasets.load_digits())
    assert (parts.name, parts.image_shape, len(parts.inputs)) == ("digits", (8, 8), 64)
    assert parts.targets["target"].kind == "integer"


@pytest.mark.parametrize("frames", [True, False])
def test_several_targets_keep_their_names(frames):
    assert list(BunchParts.of(datasets.load_linnerud(as_frame=frames)).targets) == ["Weight", "Waist", "Pulse"]


def test_what_is_not_named_is_numbered():
    parts = BunchParts.of(Bunch(data=np.eye(3), target=np.array([0.5, 1.5, 2.5])))
    assert (parts.name, list(parts.inputs), list(parts.targets)) == ("data", ["x1", "x2", "x3"], ["target"])


def test_a_bunch_without_targets_is_refused():
    assert is_bunch(Bunch(data=np.eye(2)))
    assert not is_bunch({"data": np.eye(2), "target": [1, 2]})
    with pytest.raises(InputError, match="the bunch has no target"):
        BunchParts.of(Bunch(data=np.eye(2)))

import numpy as np

from dynascope.tasks.data.labelled_images import labelled_images


def test_training_and_test_digits_have_nothing_in_common():
    data = labelled_images("digits", 200, 100, seed=1)
    assert (data.inputs.shape, data.test_inputs.shape, data.classes) == ((200, 8, 8, 1), (100, 8, 8, 1), 10)
    rows = np.concatenate([data.inputs, data.test_inputs]).reshape(300, -1)
    assert len(np.unique(rows, axis=0)) == 300
    again = labelled_images("digits", 200, 100, seed=1)
    assert np.array_equal(data.inputs, again.inputs)


def test_the_description_counts_the_drawn_images_and_separates_the_scaling():
    data = labelled_images("digits", 200, 100, seed=1)
    counts = np.bincount(data.labels)
    assert f"There are 10 classes, with {counts.min()} to {counts.max()} training images in each." in data.description
    assert data.attributes()["description"] == [*data.description, *data.scaling]
    assert "1797" not in " ".join(data.description)

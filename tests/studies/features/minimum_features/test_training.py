import gzip

import equinox as eqx
import numpy as np
import pytest

from dynascope.networks import VGG16, ResNet18
from dynascope.studies.features.minimum_features import training
from dynascope.studies.features.minimum_features.training import ClassifierRun, train_on_labels, train_on_targets
from dynascope.tasks.data.labelled_images import labelled_images

OPTIONS = {"epochs": 2, "batch_size": 8, "loss": "squared", "augment": False}


def _write_idx(folder, count=40, side=8):
    draw = np.random.default_rng(0)
    labels = (np.arange(count) % 3).astype(np.uint8)
    pixels = draw.integers(0, 256, size=(count, side, side), dtype=np.uint8)
    for name, array in (("images-idx3", pixels), ("labels-idx1", labels)):
        head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
        for part in ("train", "t10k"):
            with gzip.open(folder / f"{part}-{name}-ubyte.gz", "wb") as file:
                file.write(head + array.tobytes())


def _first_layers(network):
    """The first layers of a large network, and as much of its last one."""
    if isinstance(network, ResNet18):
        return eqx.tree_at(
            lambda each: (each.blocks, each.classifier), network, (network.blocks[:3], network.classifier[:4])
        )
    if isinstance(network, VGG16):
        shorter = network.convolutions[:3], network.classifier[:4]
        return eqx.tree_at(lambda each: (each.convolutions, each.classifier), network, shorter)
    return network


@pytest.mark.slow
@pytest.mark.parametrize("network", ["residual", "vgg-normalised", "convolutional"])
def test_the_networks_of_the_source_train_on_user_images(network, tmp_path, monkeypatch):
    # Each kind of layer once or twice: the full networks take long to compile.
    of_source = training._network
    monkeypatch.setattr(training, "_network", lambda *given: _first_layers(of_source(*given)))
    _write_idx(tmp_path)
    data = labelled_images(str(tmp_path), 24, 24, seed=0)
    assert (data.classes, data.inputs.dtype, len(data.test_inputs)) == (3, np.float32, 24)
    run = ClassifierRun(network, 2, 24, 0.01, weight_decay=1e-3)
    found = train_on_labels(run, data, **{**OPTIONS, "epochs": 1, "augment": network == "residual"}, seed=0)
    assert (found.layer.outputs.shape, found.targets.shape) == ((24, 3), (24, 3))
    assert found.layer.features.shape[0] == 24
    assert np.isfinite(found.layer.features).all()
    assert 0 <= found.accuracy <= 1
    # The outputs are an affine function of the features.
    design = np.column_stack([found.layer.features, np.ones(24)])
    left = found.layer.outputs - design @ np.linalg.lstsq(design, found.layer.outputs)[0]
    assert np.abs(left).max() < 1e-9 * np.abs(found.layer.outputs).max()


@pytest.mark.slow
def test_the_share_of_random_labels_is_the_requested_one():
    data = labelled_images("digits", 400, 400, seed=0)
    run = ClassifierRun("mlp", 4, 400, 0.01, random_labels=0.5)
    found = train_on_labels(run, data, **{**OPTIONS, "epochs": 1}, seed=0)
    changed = np.mean(found.targets.argmax(axis=1) != data.labels)
    # Half of the labels are drawn, and a tenth of these stay the same by chance: 0.45 ± 0.025.
    assert changed == pytest.approx(0.45, abs=0.1)
    plain = train_on_labels(ClassifierRun("mlp", 4, 400, 0.01), data, **{**OPTIONS, "epochs": 1}, seed=0)
    assert np.array_equal(plain.targets.argmax(axis=1), data.labels)


@pytest.mark.slow
def test_training_the_last_layer_alone_does_not_change_the_features():
    draw = np.random.default_rng(0)
    features, targets = draw.normal(size=(30, 5)), draw.normal(size=(30, 2))
    options = {"epochs": 200, "batch_size": 30, "learning_rate": 0.1, "seeds": 2}
    for found in train_on_targets(features, targets, (), **options):
        assert np.array_equal(found.layer.features, features)
        assert np.isnan(found.accuracy)
        design = np.column_stack([features, np.ones(30)])
        best = design @ np.linalg.lstsq(design, targets)[0]
        # The learning rate has fallen to a hundredth; the remaining error is far below the spread of the targets.
        np.testing.assert_allclose(found.layer.outputs, best, atol=1e-3)

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch.nn import functional  # noqa: E402

from dynascope.diagnosis import RecorderWarning  # noqa: E402
from dynascope.errors import InputError  # noqa: E402
from dynascope.symmetry import Charge, audit, find_symmetries  # noqa: E402
from dynascope.torch import Recorder, WatchedCharges  # noqa: E402


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)).double()


def data(examples):
    inputs = torch.randn(examples, 3, generator=torch.Generator().manual_seed(1)).double()
    return inputs, (inputs[:, 0] > inputs[:, 1]).long()


def flat(tensors):
    return torch.cat([each.reshape(-1) for each in tensors])


def gradient(network, inputs, labels):
    loss = functional.cross_entropy(network(inputs), labels)
    return flat(torch.autograd.grad(loss, list(network.parameters()), create_graph=True))


@pytest.mark.parametrize("criterion", [torch.nn.CrossEntropyLoss(), functional.cross_entropy])
def test_curvature_and_batch_sharpness_equal_those_of_the_dense_hessian(tmp_path, criterion):
    network, (inputs, labels) = model(), data(24)
    options = {"criterion": criterion, "preset": ["curvature", "batches"], "batch_size": 8, "verbose": False}
    with Recorder(network, tmp_path / "run.zarr", reference=(inputs, labels), **options) as recorder:
        run = recorder.read().isel(step=0)
    size = sum(each.numel() for each in network.parameters())

    def hessian(rows):
        slope = gradient(network, inputs[rows], labels[rows])
        columns = [
            flat(torch.autograd.grad(slope[k], list(network.parameters()), retain_graph=True)) for k in range(size)
        ]
        return slope.detach(), torch.stack(columns)

    _, whole = hessian(slice(None))
    largest = torch.linalg.eigvalsh(whole).flip(0)[:3]
    np.testing.assert_allclose(run["curvature"], largest, rtol=1e-8)
    np.testing.assert_allclose(run["sharpness"], largest[0], rtol=1e-8)
    batches = [hessian(slice(start, start + 8)) for start in (0, 8, 16)]
    along, squares = sum(g @ h @ g for g, h in batches), sum(g @ g for g, _ in batches)
    np.testing.assert_allclose(run["batch_sharpness"], along / squares, rtol=1e-10)
    # The covariance of single gradients, from the scatter of batches of eight around their mean.
    mean = sum(g for g, _ in batches) / 3
    noise = 8 * sum((g - mean) @ (g - mean) for g, _ in batches) / 2
    np.testing.assert_allclose(run["reference_noise"], noise, rtol=1e-10)


def test_the_exact_kernel_is_the_mean_of_the_kernels_of_the_outputs(tmp_path):
    network, (inputs, labels) = model(), data(10)
    options = {"preset": ["exact_kernel"], "verbose": False}
    with Recorder(network, tmp_path / "run.zarr", reference=(inputs, labels), **options) as recorder:
        found = float(recorder.read()["exact_kernel_trace"][0])
    jacobians = [flat(torch.autograd.grad(network(x)[c], list(network.parameters()))) for x in inputs for c in range(2)]
    assert found == pytest.approx(sum(float(row @ row) for row in jacobians) / 20, rel=1e-10)


def test_probes_of_the_loss_are_omitted_by_name_without_one(tmp_path):
    options = {"preset": ["light", "curvature"], "verbose": False}
    with (
        pytest.warns(UserWarning, match="curvature.*criterion"),
        Recorder(model(), tmp_path / "run.zarr", reference=data(10), **options) as recorder,
    ):
        assert "curvature" not in recorder.read()


def test_the_noise_scale_is_unbiased(tmp_path):
    network, (inputs, labels) = model(), data(400)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.0)
    options = {"preset": ["noise_scale"], "schedule": 1, "max_overhead": None, "verbose": False}
    draws = torch.Generator().manual_seed(2)
    with Recorder(network, tmp_path / "run.zarr", reference=(inputs, labels), **options) as recorder:
        for _ in range(300):
            for _ in range(4):
                rows = torch.randint(400, (5,), generator=draws)
                (functional.cross_entropy(network(inputs[rows]), labels[rows]) / 4).backward()
                recorder.micro_batch(5)
            optimizer.step()
            recorder.step()
            optimizer.zero_grad()
    run = recorder.read().isel(step=slice(1, None))
    single = torch.stack([gradient(network, inputs[k : k + 1], labels[k : k + 1]).detach() for k in range(400)])
    for name, expected in (
        ("gradient_noise", single.var(0, correction=0).sum()),
        ("gradient_signal", single.mean(0).square().sum()),
    ):
        error = float(run[name].std()) / 300**0.5
        assert abs(float(run[name].mean()) - float(expected)) < 4 * error


@pytest.mark.parametrize("clipped", [False, True])
def test_recorded_charges_can_be_audited(tmp_path, clipped):
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    inputs, labels = (each.float() if each.is_floating_point() else each for each in data(30))
    options = {"preset": "light", "charges": True, "optimizer": optimizer, "verbose": False}
    with Recorder(network, tmp_path / "run.zarr", reference=(inputs, labels), **options) as recorder:
        for _ in range(20):
            loss = functional.cross_entropy(network(inputs), labels)
            loss.backward()
            if clipped:
                torch.nn.utils.clip_grad_norm_([network[0].weight], 1e-3)
            optimizer.step()
            recorder.step(loss=loss)
            optimizer.zero_grad()
    assert audit(recorder.read(), recorder.symmetries).clean is not clipped


@pytest.mark.parametrize("causes", [False, True])
def test_training_is_bit_identical_with_charges(tmp_path, causes):
    def trained(recorded):
        torch.manual_seed(0)
        network = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
        inputs, labels = (each.float() if each.is_floating_point() else each for each in data(30))
        options = {"criterion": functional.cross_entropy, "flipped": [1], "charges": True, "causes": causes}
        recorder = (
            Recorder(
                network,
                tmp_path / "run.zarr",
                reference=(inputs, labels),
                optimizer=optimizer,
                verbose=False,
                **options,
            )
            if recorded
            else None
        )
        torch.manual_seed(1)
        for _ in range(5):
            rows = torch.randperm(30)[:10]
            loss = functional.cross_entropy(network(inputs[rows]), labels[rows])
            loss.backward()
            optimizer.step()
            if recorder is not None:
                recorder.step(loss=loss)
            optimizer.zero_grad()
        if recorder is not None:
            recorder.close()
            assert ("cause_part_slope" in recorder.read()) is causes
            assert not any(name.startswith("cause_") for name in recorder.scalars())
        return [*network.parameters(), torch.get_rng_state()]

    assert all(map(torch.equal, trained(False), trained(True)))


class ScaledCharge(Charge):
    """A subclass that records cannot store."""


def test_symmetries_that_cannot_be_stored_are_named(tmp_path):
    network = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    inputs = data(30)[0].float()
    (found,) = find_symmetries(network, None, inputs).symmetries
    own = ScaledCharge(found.kind, found.parts, found.units)
    options = {"preset": "light", "charges": [own], "optimizer": optimizer, "verbose": False}
    with (
        pytest.warns(RecorderWarning, match="ScaledCharge"),
        Recorder(network, tmp_path / "run.zarr", reference=inputs, **options) as recorder,
    ):
        pass
    assert "symmetries" not in recorder.read().attrs


def test_a_rejected_recorder_stops_tracking_charges(tmp_path, monkeypatch):
    network = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    closed = []
    monkeypatch.setattr(WatchedCharges, "close", lambda watched: closed.append(watched))
    with pytest.raises(InputError, match="exists"):
        Recorder(network, tmp_path, reference=data(30)[0].float(), optimizer=optimizer, charges=True, verbose=False)
    assert len(closed) == 1

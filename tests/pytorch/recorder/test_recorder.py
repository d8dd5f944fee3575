"""Recorders of PyTorch: training stays bit-identical, and every variable is what a calculation by hand gives."""

from __future__ import annotations

import copy
import itertools
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from dynascope.diagnosis import Probe, RecorderWarning
from dynascope.errors import InputError
from dynascope.probes.class_moments import class_moments
from dynascope.probes.features.metrics import feature_metrics
from dynascope.probes.kernel.distance_and_alignment import target_alignment
from dynascope.probes.neural_collapse import collapse_metrics, nearest_mean_disagreement

torch = pytest.importorskip("torch", reason="PyTorch is an optional extra")
from recorded_training import INPUTS, LABELS, PAIR, functional, hooks, mlp, random_state, same, seed_all, sgd, train  # noqa: E402

Recorder = pytest.importorskip("dynascope.torch").Recorder
nn = torch.nn
TIMES = {"seconds", "probe_seconds"}
SUMS = {"mean_loss", "max_loss", "loss_count"}  # over the steps since the previous row
FLIPPED = [1, 5, 20]


def recorder_of(model, path, **options):
    return Recorder(model, path, **{"reference": PAIR, "verbose": False, "max_overhead": None, **options})


def wide(*inner):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 16), *inner, nn.ReLU(inplace=True), nn.Linear(16, 3))


SETUPS: dict[str, tuple[Any, dict[str, Any]]] = {
    "autocast": (wide, {"autocast": True}),
    "dropout": (lambda: wide(nn.Dropout(0.5)), {}),
    "batch norm": (lambda: wide(nn.BatchNorm1d(16)), {}),
    "accumulation": (lambda: wide(nn.Dropout(0.5)), {"parts": 3}),
}


def outcomes(make, path, how, **options):
    for recorded in (False, True):
        model = make()
        optimizer = sgd(model)
        seed_all(1)
        if recorded:
            with recorder_of(model, path, optimizer=optimizer, schedule=1, **options) as recorder:
                found = train(model, recorder, optimizer=optimizer, **how)
            assert hooks(model, optimizer) == []
        else:
            found = train(model, optimizer=optimizer, **how)
        yield [*found, str(optimizer.state_dict()), model.training]


@pytest.mark.parametrize("name", SETUPS)
def test_training_is_bit_identical(name, tmp_path):
    make, how = SETUPS[name]
    reference = INPUTS.float(), LABELS
    assert same(*outcomes(make, tmp_path / "run.zarr", how, reference=reference))


@pytest.mark.slow
@pytest.mark.skipif(not any(map(shutil.which, ("c++", "g++", "clang++"))), reason="torch.compile needs a C++ compiler")
def test_compiled_training_is_bit_identical(tmp_path):
    reference = INPUTS.float(), LABELS

    def make():
        torch.compiler.reset()  # A program compiled for batches of any size rounds differently than the first one.
        return torch.compile(wide(nn.Dropout(0.5), nn.BatchNorm1d(16)))

    assert same(*outcomes(make, tmp_path / "run.zarr", {}, reference=reference))


def test_a_compiled_module_is_not_compiled_again(tmp_path):
    programs = []

    def backend(graph, inputs):
        programs.append(graph)
        return graph.forward

    inner = wide(nn.BatchNorm1d(16))
    model = torch.compile(inner, backend=backend, dynamic=True)
    optimizer = sgd(model)
    seed_all(0)
    train(model, optimizer=optimizer)
    before = len(programs)
    with recorder_of(model, tmp_path / "run.zarr", reference=(INPUTS.float(), LABELS), schedule=1) as recorder:
        train(model, recorder, optimizer=optimizer)
    train(model, optimizer=optimizer)
    assert before == len(programs) > 0
    assert list(recorder.read()["parameter"].values) == [name for name, _ in inner.named_parameters()]


@pytest.mark.slow
def test_rank_0_records_data_parallel_training_bit_identically(tmp_path):
    script = Path(__file__).parents[2] / "parallel_training.py"

    def run(kind):
        calls = [
            subprocess.Popen([sys.executable, script, str(rank), tmp_path / kind, kind], stdout=subprocess.PIPE)
            for rank in range(2)
        ]
        found = [call.communicate(timeout=300)[0] for call in calls]
        assert [call.returncode for call in calls] == [0, 0]
        return found

    assert run("plain") == run("recorded")
    assert [path.name for path in tmp_path.glob("*.zarr")] == ["rank0.zarr"]
    assert xr.open_zarr(tmp_path / "rank0.zarr")["written"] == 7


def by_hand(states, gradients, rate):
    """Every variable of a record of `mlp`, from the weights and gradients after each step."""
    x, labels, classes = INPUTS.numpy(), LABELS.numpy(), 3
    first = states[0]
    hidden = [state["0.weight"] @ x.T + state["0.bias"][:, None] for state in states]

    def kernel(state):
        # The gradient of the sum of outputs over √c of each example.
        z = x @ state["0.weight"].T + state["0.bias"]
        signal = state["2.weight"].sum(0) * (z > 0)
        parts = (
            signal[:, :, None] * x[:, None],
            signal,
            np.repeat(np.maximum(z, 0)[:, None], 3, 1),
            np.ones((len(x), 3)),
        )
        flat = np.concatenate([part.reshape(len(x), -1) for part in parts], axis=1) / classes**0.5
        return flat @ flat.T

    def unit(matrix):
        return matrix / np.linalg.norm(matrix)

    def duplicates(matrix):
        cosines = [[a @ b / np.linalg.norm(a) / np.linalg.norm(b) for b in matrix] for a in matrix]
        return np.mean([sum(each >= 0.99 for each in row) > 1 for row in cosines])

    def suspected(p):
        thresholds = [p[labels == label, label].mean() for label in range(classes)]
        found = []
        for row, label in zip(p, labels, strict=True):
            confident = [j for j in range(classes) if row[j] >= thresholds[j]]
            best = max(confident, key=lambda j: row[j]) if confident else label
            found.append(-1 if best == label else best)
        return np.array(found)

    def suspicion(p):
        found = suspected(p)
        odds = [np.log(row[j] / row[k]) for row, j, k in zip(p, found, labels, strict=True) if j >= 0]
        return np.mean(odds) if odds else 0

    def total(*arrays):
        return np.sqrt(sum(np.sum(each**2) for each in arrays))

    rows = []
    for step, (state, z) in enumerate(zip(states, hidden, strict=True)):
        h, weight, bias = np.maximum(z, 0).T, state["2.weight"], state["2.bias"]
        outputs = h @ weight.T + bias
        p = np.exp(outputs) / np.exp(outputs).sum(1, keepdims=True)
        right = outputs.argmax(1) == labels
        squares = [total(state[f"{layer}.weight"]) ** 2 for layer in (0, 2)]
        moments = class_moments(h, labels, classes=classes)
        collapse = collapse_metrics(moments, weight, layout="classes_features")
        found = feature_metrics(h, outputs, labels)
        whole, half = kernel(state), len(x) // 2
        halves = whole[:half, :half], whole[half : 2 * half, half : 2 * half]
        k, k0 = unit(whole), unit(kernel(first))
        gradient = gradients[step - 1] if step else dict.fromkeys(state, np.array(np.nan))
        units = [np.linalg.norm(state[f"{layer}.weight"], axis=1) for layer in (0, 2)]
        rows.append(
            {
                "step": step,
                "learning_rate": [rate],
                "epoch": 0,
                "weight_norm": [total(each) for each in state.values()],
                "gradient_norm": [total(each) for each in gradient.values()],
                "update_norm": [rate * total(each) for each in gradient.values()],
                "displacement": [total(state[name] - first[name]) for name in state],
                "total_weight_norm": total(*state.values()),
                "total_gradient_norm": total(*gradient.values()),
                "total_update_norm": rate * total(*gradient.values()),
                "relative_displacement": total(*(state[name] - first[name] for name in state)) / total(*first.values()),
                "layer_balance": [(squares[1] - squares[0]) / sum(squares)],
                "vanishing_fraction": [np.mean(each < 0.01 * each.max()) for each in units],
                "duplicate_fraction": [duplicates(state[f"{layer}.weight"]) for layer in (0, 2)],
                "reference_loss": -np.mean(np.log(p[np.arange(len(x)), labels])),
                "reference_accuracy": np.mean(right),
                "suspected_noise": np.mean(suspected(p) >= 0),
                "suspected_class": suspected(p),
                "suspicion": suspicion(p),
                "unsuspected_accuracy": np.mean(right[suspected(p) < 0]),
                "flipped_fit": np.mean(right[FLIPPED]),
                "flipped_share": len(FLIPPED) / len(x),
                "dead_fraction": [np.mean(np.all(z <= 0, axis=1))],
                "always_on_fraction": [np.mean(np.all(z > 0, axis=1))],
                "hamming_distance": np.mean((z > 0) != (hidden[0] > 0)),
                "layer_hamming_distance": [np.mean((z > 0) != (hidden[0] > 0))],
                "nc1": collapse.nc1,
                "nc2_angle": collapse.nc2_angle,
                "nc2_norm": collapse.nc2_norm,
                "nc3": collapse.nc3,
                "nc4": nearest_mean_disagreement(moments, h, weight, bias, layout="classes_features") / len(x),
                "effective_dimension": [found.effective_dimension],
                "effective_dimension_utilization": [found.effective_dimension_utilization],
                "effective_dimension_quality": [found.effective_dimension_quality],
                "output_dimension": [found.output_dimension],
                "kappa_cka": [found.kappa_cka],
                "feature_alignment": [target_alignment(h @ h.T, np.eye(classes)[labels], centred=True)],
                "kernel_distance": np.sum((k - k0) ** 2) / 2,
                "kernel_distance_of_halves": np.sum((unit(halves[0]) - unit(halves[1])) ** 2) / 2,
                "kernel_trace": np.trace(whole) / len(x),
            }
        )
    return {name: np.array([row[name] for row in rows], float) for name in rows[0]}


def arrays_of(named):
    return {name: each.detach().numpy().copy() for name, each in named}


def recorded(path, steps=8, each=None, **options):
    """A record of a run of `mlp` by plain descent, its states and its gradients."""
    model = mlp()
    with torch.no_grad():
        model[0].weight[0] *= 1e-6  # a vanishing unit
        model[0].weight[3] = 2 * model[0].weight[2]  # duplicate units
        model[0].bias[1] = -9.0  # a dead unit
    optimizer = sgd(model, lr=0.4, momentum=0.0)
    states, gradients, losses = [arrays_of(model.named_parameters())], [], []
    with recorder_of(model, path, optimizer=optimizer, **options) as recorder:
        for _ in range(steps):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(INPUTS), LABELS)
            loss.backward()
            gradients.append(arrays_of((name, each.grad) for name, each in model.named_parameters()))
            optimizer.step()
            recorder.step(loss=loss)
            losses.append(loss.item())
            states.append(arrays_of(model.named_parameters()))
    return recorder.read(), by_hand(states, gradients, 0.4), losses


def test_every_variable_equals_a_calculation_by_hand(tmp_path):
    options = {"criterion": functional.cross_entropy, "flipped": FLIPPED}
    run, expected, losses = recorded(tmp_path / "run.zarr", schedule=1, **options)
    expected |= {name: np.array([np.nan, *losses]) for name in ("loss", "mean_loss", "max_loss")}
    expected["loss_count"] = np.array([0.0, *np.ones(len(losses))])
    measured = run["measured"].sel(probe="kernel").values
    assert list(run["step"].values[measured]) == [0, 1, 2, 3, 6]
    np.testing.assert_array_equal(run["measured"].sel(probe="duplicates"), measured)
    for name in ("kernel_distance", "kernel_distance_of_halves", "kernel_trace", "duplicate_fraction"):
        expected[name][~measured] = np.nan
    without_micro_batches = {"gradient_noise", "gradient_signal", "gradient_noise_scale"}
    assert all(np.isnan(run[name]).all() for name in without_micro_batches)
    assert {*run.variables} - {*run.coords} - TIMES - {"measured"} - without_micro_batches == {*expected} - {"step"}
    for name, values in expected.items():
        np.testing.assert_allclose(run[name].values, values, rtol=1e-10, atol=1e-12, err_msg=name)
    assert expected["hamming_distance"][-1] > 0
    assert expected["vanishing_fraction"][0, 0] > 0 < expected["dead_fraction"][0]
    assert expected["duplicate_fraction"][0, 0] > 0 < expected["suspected_noise"][0]


@pytest.mark.slow
def test_rows_do_not_depend_on_the_schedule(tmp_path):
    run, _, losses = recorded(tmp_path / "all.zarr", steps=12, schedule=1)
    thin, *_ = recorded(tmp_path / "log.zarr", steps=12, schedule=[3, 4, 10])
    steps = thin["step"].values
    assert list(steps) == [0, 3, 4, 10, 12]
    chosen = run.sel(step=steps)
    sparse = {"kernel_distance", "kernel_distance_of_halves", "kernel_trace", "duplicate_fraction", "measured"}
    for name in {*run.data_vars} - TIMES - SUMS - sparse:
        values = chosen[name].values
        if name in ("gradient_norm", "total_gradient_norm", "update_norm", "total_update_norm"):
            values, found = values[:-1], thin[name].values[:-1]  # `close` measures the last row
        else:
            found = thin[name].values
        np.testing.assert_array_equal(found, values, err_msg=name)
    between = [losses[start:stop] for start, stop in itertools.pairwise(steps)]
    np.testing.assert_allclose(thin["mean_loss"].values[1:], list(map(np.mean, between)), rtol=1e-12)
    np.testing.assert_allclose(thin["max_loss"].values[1:], list(map(max, between)), rtol=1e-12)


@pytest.mark.slow
def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path):
    saved = {}

    def save(step):
        if step == 5:
            saved.update(copy.deepcopy({"model": model.state_dict(), "optimizer": optimizer.state_dict()}))
            saved["random"] = random_state()[::2]

    model = mlp()
    optimizer = sgd(model)
    seed_all(3)
    options = {"optimizer": optimizer, "schedule": 2, "batch_size": 11}
    with recorder_of(model, tmp_path / "whole.zarr", **options) as recorder:
        train(model, recorder, optimizer=optimizer, steps=9, each=save)
    whole = recorder.read()
    part = tmp_path / "part.zarr"
    shutil.copytree(tmp_path / "whole.zarr", part)  # as if killed after step 9

    model = mlp(seed=5)
    optimizer = sgd(model)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    other = mlp()
    seed_all(3)
    train(other, steps=5)  # the random numbers before the checkpoint
    assert random_state()[::2] == saved["random"]
    with recorder_of(model, part, optimizer=optimizer, schedule=2, resume=5) as recorder:
        assert recorder.steps == 5
        train(model, recorder, optimizer=optimizer, steps=4)
    again = recorder.read()
    assert list(again["step"].values) == [0, 2, 4, 6, 8, 9]
    xr.testing.assert_equal(again.drop_vars([*TIMES, *SUMS]), whole.drop_vars([*TIMES, *SUMS]))
    assert again.attrs == whole.attrs
    assert (again.attrs["optimizer"], again.attrs["batch_size"]) == ("SGD", 11)
    with pytest.raises(InputError, match="another model or of other probes"):
        recorder_of(wide().double(), part, resume=5)


class FirstSeen(nn.Module):
    """A module with two named layers, one of which returns integers."""

    def __init__(self):
        super().__init__()
        self.numbers, self.body = nn.Identity(), mlp()

    def forward(self, x):
        self.numbers(torch.arange(len(x)))
        return self.body(x)


@pytest.mark.parametrize(
    ("make", "options", "match"),
    [
        (lambda: nn.LazyLinear(3), {}, "uninitialised parameters"),
        (lambda: mlp().requires_grad_(False), {}, "no trainable parameters"),
        (mlp, {"parameters": "9.*"}, "parameters selects no trainable parameter"),
        (mlp, {"layers": ["9"]}, "no layer named '9'"),
        (mlp, {"reference": (INPUTS[:1], LABELS[:1])}, "one example"),
        (mlp, {"reference": (INPUTS[:, :2], LABELS)}, "fails on the reference batch"),
        (mlp, {"reference": (INPUTS, {"labels": LABELS})}, "values other than tensors"),
        (
            lambda: nn.Sequential(mlp(), nn.Flatten(0)),
            {"output": lambda found: found.sum()},
            "number instead of one output",
        ),
        (mlp, {"preset": ["heavy"]}, "'heavy'"),
        (mlp, {"flipped": [24]}, "flipped has shape"),
        (mlp, {"flipped": torch.zeros(5, dtype=torch.bool)}, "24 examples"),
        (mlp, {"flipped": [1], "reference": INPUTS}, "no targets"),
        (mlp, {"reference": (INPUTS, LABELS[:5]), "strict": True}, "have length 5, but the outputs have 24 rows"),
    ],
)
def test_bad_input_is_named(make, options, match, tmp_path):
    with pytest.raises(InputError, match=match):
        recorder_of(make(), tmp_path / "run.zarr", **options)
    assert not (tmp_path / "run.zarr").exists()


def test_one_recorder_per_folder(tmp_path):
    path = tmp_path / "run.zarr"
    with recorder_of(mlp(), path, preset="light"), pytest.raises(InputError, match="another recorder writes"):
        recorder_of(mlp(), path)
    with pytest.raises(InputError, match="exists"):
        recorder_of(mlp(), path)


@pytest.mark.parametrize("kind", ["fsdp", "sharded"])
def test_sharded_weights_are_rejected(kind, tmp_path):
    distributed = torch.distributed
    if not distributed.is_available():
        pytest.skip("this build of PyTorch has no distributed training")
    distributed.init_process_group("gloo", init_method=f"file://{tmp_path / 'group'}", rank=0, world_size=1)
    try:
        mesh = distributed.device_mesh.init_device_mesh("cpu", (1,))
        if kind == "fsdp":
            model = distributed.fsdp.fully_shard(mlp(), mesh=mesh)
        else:
            model = mlp()
            shards = distributed.tensor.distribute_tensor(model[0].weight.detach(), mesh)
            model[0].weight = nn.Parameter(shards)
        with pytest.raises(InputError, match="sharded over several processes"):
            recorder_of(model, tmp_path / "run.zarr")
    finally:
        distributed.destroy_process_group()


def test_a_closed_recorder_records_no_steps(tmp_path):
    with recorder_of(mlp(), tmp_path / "run.zarr", preset=["balance"]) as recorder:
        recorder.step(loss=1.0)
    recorder.close()
    with pytest.raises(InputError, match="recorder is closed"):
        recorder.step(loss=1.0)
    assert list(recorder.read()["step"].values) == [0, 1]


def test_new_parameter_groups_are_named_and_lost_parameters_stop_the_record(tmp_path):
    model = mlp()
    optimizer = torch.optim.SGD(model[2].parameters(), lr=0.5)
    recorder = recorder_of(model, tmp_path / "run.zarr", optimizer=optimizer, schedule=1)
    model(INPUTS).sum().backward()
    optimizer.add_param_group({"params": model[0].parameters(), "lr": 0.25})
    with pytest.warns(RecorderWarning, match="parameter groups"):
        recorder.step()
    assert recorder.read()["learning_rate"].values.tolist() == [[0.5], [0.5]]
    nn.utils.parametrizations.weight_norm(model[0])
    with pytest.raises(InputError, match=r"no longer has the parameter '0.weight'"):
        recorder.step()


def fail(snapshot):
    raise ValueError("no such thing")


FAILING = Probe("failing", "Fails.", ("weights",), fail, lambda sizes: (0.0, 0.0), {})  # pyright: ignore


def clear_early(recorder, model):
    loss = functional.cross_entropy(model(INPUTS), LABELS)
    loss.backward()
    model.zero_grad()
    recorder.step(loss=loss)


@pytest.mark.parametrize(
    ("options", "act", "match"),
    [
        ({"preset": "light"}, clear_early, "no gradients"),
        ({"preset": "light"}, lambda recorder, model: recorder.step(loss=float("nan")), "not finite at or before step"),
        ({"preset": ["light", FAILING]}, lambda recorder, model: None, "'failing' is omitted"),
        ({"preset": ["light", "features"], "layers": ["numbers", "body.0"]}, lambda recorder, model: None, "'numbers'"),
    ],
)
def test_what_cannot_be_measured_is_named_once_or_raises(options, act, match, tmp_path):
    def run(path, **more):
        model = FirstSeen()
        model(INPUTS).sum().backward()
        with recorder_of(model, path, schedule=1, **options, **more) as recorder:
            for _ in range(3):
                act(recorder, model)

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        run(tmp_path / "run.zarr")
    assert [each.category for each in seen if match.replace("\\", "") in str(each.message)] == [RecorderWarning]
    with pytest.raises((InputError, ValueError), match="no such thing" if "failing" in match else match):
        run(tmp_path / "strict.zarr", strict=True)


@pytest.mark.parametrize("parameters", [["0.*"], lambda name: name.startswith("0."), "0.*"])
def test_a_filter_selects_parameters(parameters, tmp_path):
    model = mlp()
    with recorder_of(model, tmp_path / "run.zarr", parameters=parameters, schedule=1, preset="light") as recorder:
        train(model, recorder, steps=2)
    run = recorder.read()
    assert list(run["parameter"].values) == ["0.weight", "0.bias"]
    expected = np.linalg.norm(
        np.concatenate([each.ravel() for each in arrays_of(model[0].named_parameters()).values()])
    )
    np.testing.assert_allclose(run["total_weight_norm"].values[-1], expected, rtol=1e-12)


@pytest.mark.parametrize("activation", [nn.Tanh, nn.Identity])
def test_a_model_without_known_activations_is_named_once_or_raised(tmp_path, activation):
    model = nn.Sequential(nn.Linear(3, 6), activation(), nn.Linear(6, 3)).double()
    with pytest.warns(RecorderWarning, match="no activation function such as ReLU") as found:
        recorder = recorder_of(model, tmp_path / "run.zarr")
    recorder.close()
    assert len(found) == 1
    assert not {"activity", "flips"} & {*recorder.read()["probe"].values}
    with pytest.raises(InputError, match="no activation function such as ReLU"):
        recorder_of(model, tmp_path / "strict.zarr", strict=True)


def test_tensorboard_gets_the_latest_row(tmp_path):
    tensorboard = pytest.importorskip("torch.utils.tensorboard", reason="TensorBoard is not installed")
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    model = mlp()
    with recorder_of(model, tmp_path / "run.zarr", schedule=1, optimizer=sgd(model)) as recorder:
        train(model, recorder, steps=2)
    with tensorboard.SummaryWriter(tmp_path / "logs") as writer:
        for name, value in recorder.scalars().items():
            writer.add_scalar(name, value, recorder.steps)
    found = events.EventAccumulator(str(tmp_path / "logs")).Reload()
    last = recorder.read().isel(step=-1)
    last = last.assign_coords(pair=[each.replace("→", "to") for each in last["pair"].values])
    assert {"weight_norm/0.weight", "nc1", "learning_rate/0", "dead_fraction/1"} <= {*found.Tags()["scalars"]}
    for name in found.Tags()["scalars"]:
        variable, *labels = name.split("/")
        values = last[variable]
        value = (
            values.sel({values.dims[0]: type(values[values.dims[0]].values[0].item())(labels[0])}) if labels else values
        )
        assert found.Scalars(name)[0].value == pytest.approx(float(value), rel=1e-6), name
        assert found.Scalars(name)[0].step == 2

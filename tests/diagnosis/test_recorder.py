"""Recorders of JAX training runs."""

import re
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from snapshots import probe

import dynascope
from dynascope import Recorder
from dynascope.diagnosis import RecorderWarning, load_run
from dynascope.errors import InputError
from dynascope.probes.neural_collapse import neural_collapse

X = np.random.default_rng(0).normal(size=(24, 3)).astype(np.float32)
LABELS = np.arange(24) % 2
PARAMS = {
    "in": {"b": jnp.zeros(4), "w": jnp.asarray(np.random.default_rng(1).normal(size=(3, 4)), jnp.float32)},
    "out": {"b": jnp.zeros(2), "w": jnp.asarray(np.random.default_rng(2).normal(size=(4, 2)), jnp.float32)},
}


def apply(params, x):
    h = jax.nn.relu(x @ params["in"]["w"] + params["in"]["b"])
    return h @ params["out"]["w"] + params["out"]["b"], {"h": h, "a": 2 * h}


def criterion(outputs, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(outputs), labels[:, None], axis=1).mean()


@jax.jit
def gradient(params):
    return jax.value_and_grad(lambda each: criterion(apply(each, X)[0], LABELS))(params)


@jax.jit
def descend(params, gradients):
    return jax.tree.map(lambda w, g: w - 0.1 * g, params, gradients)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.zarr"


def recorder(path, params=PARAMS, function=apply, **options):
    options = {"preset": "light", "schedule": 1, "verbose": False, "reference": (X, LABELS), **options}
    return Recorder(function, params, path, **options)


def train(recorder, steps, params=PARAMS):
    for _ in range(steps):
        loss, gradients = gradient(params)
        params = descend(params, gradients)
        recorder.step(params, loss=loss, gradients=gradients, learning_rate=0.1)
    return params


def test_it_is_offered_at_the_top():
    assert dynascope.Recorder is dynascope.diagnosis.Recorder


def test_norms_of_a_run(path):
    with recorder(path) as running:
        last = train(running, 3)
    run = running.read()
    assert run["step"].values.tolist() == [0, 1, 2, 3]
    assert run["parameter"].values.tolist() == ["in.b", "in.w", "out.b", "out.w"]
    norm = run["weight_norm"].sel(parameter="in.w").values
    assert norm[0] == pytest.approx(np.linalg.norm(PARAMS["in"]["w"]))
    assert norm[3] == pytest.approx(np.linalg.norm(last["in"]["w"]))
    moved = np.linalg.norm(np.asarray(last["out"]["w"]) - PARAMS["out"]["w"])
    assert run["displacement"].sel(parameter="out.w").values[3] == pytest.approx(moved, rel=1e-5)
    # An update of gradient descent is the learning rate times the gradient.
    np.testing.assert_allclose(run["update_norm"][1:], 0.1 * run["gradient_norm"][1:], rtol=1e-4)
    assert run["learning_rate"].values[1:, 0].tolist() == [pytest.approx(0.1)] * 3
    assert run["loss"].values[1] == pytest.approx(float(gradient(PARAMS)[0]))


@pytest.mark.slow
def test_measurements_are_compiled_once_and_training_does_not_run_again(path):
    calls = {"apply": 0}

    def counted(params, x):
        calls["apply"] += 1
        return apply(params, x)

    params = PARAMS
    options = {"preset": "full", "criterion": criterion, "max_overhead": None, "batch_size": 8}
    with recorder(path, function=counted, **options) as running:
        params = train(running, 2)
        before = calls["apply"]
        train(running, 20, params)
    assert calls["apply"] == before


@pytest.mark.slow
def test_parameters_whose_memory_is_reused(path):
    reusing = jax.jit(descend, donate_argnums=0)
    params = jax.tree.map(jnp.array, PARAMS)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RecorderWarning)
        with recorder(path, preset="standard", schedule=[1, 3]) as running:
            for _ in range(3):
                _, gradients = gradient(params)
                params = reusing(params, gradients)
                running.step(params, gradients=gradients)
    run = running.read()
    assert run["step"].values.tolist() == [0, 1, 3]
    assert np.isfinite(run["update_norm"].values[1:]).all()


def test_loops_without_gradients_are_recorded_without_a_warning(path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RecorderWarning)
        with recorder(path) as running:
            running.step(PARAMS)
    assert np.isnan(running.read()["gradient_norm"]).all()


def test_gradients_by_path_and_zero_where_missing(path):
    partial = {"in": {"b": None, "w": 3 * jnp.ones((3, 4))}, "out": {"b": None, "w": None}}
    with recorder(path) as running:
        running.step(PARAMS, gradients=partial)
        with pytest.raises(InputError, match="gradients"):
            running.step(PARAMS, gradients={"other": jnp.ones(3)})
    assert running.read()["gradient_norm"].values[1].tolist() == [0, pytest.approx(3 * 12**0.5), 0, 0]


@pytest.mark.slow
def test_features_of_apply_and_of_a_function_in_the_order_of_layers(path):
    def extra(params, x):
        return {"z": x @ params["in"]["w"]}

    with recorder(path, preset="standard", features=extra) as running:
        pass
    assert running.read()["layer"].values.tolist() == ["h", "a", "z"]
    with recorder(path.with_name("two.zarr"), preset="standard", features=extra, layers=["z", "h"]) as running:
        pass
    assert running.read()["layer"].values.tolist() == ["z", "h"]


@pytest.mark.slow
def test_collapse_of_the_features_that_the_readout_receives(path):
    h = np.asarray(apply(PARAMS, X)[1]["h"])
    w, b = np.asarray(PARAMS["out"]["w"]), np.asarray([1.0, -1.0])
    params = {**PARAMS, "out": {"w": w, "b": jnp.asarray(b, jnp.float32)}}
    with recorder(
        path, params, preset=["collapse"], readout="out.w", readout_bias="out.b", layers=["a", "h"]
    ) as running:
        pass
    found = neural_collapse(h.astype(float), LABELS, w.astype(float), b, layout="features_classes")
    for name in ("nc1", "nc2_norm", "nc3", "nc4"):
        assert running.read()[name].values[0] == pytest.approx(float(getattr(found, name)), abs=1e-5)


@pytest.mark.slow
def test_equinox_modules(path):
    network = eqx.nn.MLP(3, 2, 4, 1, key=jax.random.key(0))
    params, static = eqx.partition(network, eqx.is_inexact_array)
    options = {"preset": "standard", "layout": "outputs_inputs", "readout": "layers.1.weight"}
    hidden = lambda params, x: {"h": jax.nn.relu(x @ params.layers[0].weight.T + params.layers[0].bias)}  # noqa: E731
    function = lambda params, x: jax.vmap(eqx.combine(params, static))(x)  # noqa: E731
    with recorder(path, params, function, features=hidden, **options) as running:
        pass
    run = running.read()
    z = X @ np.asarray(network.layers[0].weight).T + np.asarray(network.layers[0].bias)
    assert run["matrix"].values.tolist() == ["layers.0.weight", "layers.1.weight"]
    assert run["activation"].values.tolist() == ["relu"]
    assert run["dead_fraction"].values[0, 0] == np.mean(~(z > 0).any(axis=0))
    assert np.isfinite(run["nc3"]).all()


@pytest.mark.slow
def test_whole_equinox_modules_with_functions_as_leaves(path):
    network = eqx.nn.MLP(3, 2, 4, 1, key=jax.random.key(0))
    with recorder(path, network, lambda module, x: jax.vmap(module)(x), preset="standard") as running:
        running.step(network)
    assert running.read()["kernel_distance"].values[1] == pytest.approx(0, abs=1e-6)


def test_given_activations_replace_those_in_the_program(path):
    with recorder(
        path, preset=["activity"], activations=lambda params, x: {"shifted": x + 100, "dead": -jnp.abs(x) - 1}
    ) as running:
        pass
    run = running.read()
    assert run["activation"].values.tolist() == ["shifted", "dead"]
    assert run["always_on_fraction"].values.tolist() == [[1, 0]]
    assert run["dead_fraction"].values.tolist() == [[0, 1]]


@pytest.mark.slow
def test_a_filter_selects_parameters_of_the_norms_and_of_the_kernel(path):
    kernels = {}
    for name, chosen in (("all", None), ("out", ["out.*"]), ("in", lambda each: each.startswith("in"))):
        options = {"preset": ["weights", "kernel"], "parameters": chosen}
        with recorder(path.with_name(f"{name}.zarr"), **options) as running:
            pass
        kernels[name] = float(running.read()["kernel_trace"][0])
        if name == "out":
            assert running.read()["parameter"].values.tolist() == ["out.b", "out.w"]
    assert kernels["in"] + kernels["out"] == pytest.approx(kernels["all"], rel=1e-5)


@pytest.mark.slow
def test_curvature_of_a_linear_model_is_that_of_its_inputs(path):
    y = np.ones((24, 1), np.float32)
    linear = lambda params, x: x @ params  # noqa: E731
    half = lambda outputs, targets: 0.5 * jnp.mean((outputs - targets) ** 2)  # noqa: E731
    options = {"preset": ["curvature", "batches"], "criterion": half, "batch_size": 12, "reference": (X, y)}
    with recorder(path, jnp.zeros((3, 1)), linear, **options) as running:
        pass
    run = running.read()
    curvature = np.linalg.eigvalsh(X.T @ X / 24)[::-1]
    np.testing.assert_allclose(run["curvature"].values[0], curvature, rtol=1e-5)
    halves = [X[:12].astype(float), X[12:].astype(float)]
    g = [-h.mean(axis=0) for h in halves]
    sharpness = sum(each @ (h.T @ h / 12) @ each for each, h in zip(g, halves, strict=True)) / sum(e @ e for e in g)
    assert run["batch_sharpness"].values[0] == pytest.approx(sharpness, rel=1e-5)


def test_noise_scale_of_micro_batches(path):
    ones = jax.tree.map(jnp.ones_like, PARAMS)  # 4 + 12 + 2 + 8 = 26 numbers
    with recorder(path, preset=["noise_scale"]) as running:
        for factor in (3.0, 1.0):
            running.micro_batch(jax.tree.map(lambda each, factor=factor: factor * each, ones), 8)
        running.step(PARAMS)
        running.step(PARAMS)
    run = running.read()
    assert run["gradient_noise"].values[1] == pytest.approx(26 * 16)
    assert run["gradient_signal"].values[1] == pytest.approx(26 * 3)
    assert np.isnan(run["gradient_noise"].values[[0, 2]]).all()


def test_epochs(path):
    with recorder(path, schedule="epochs") as running:
        for _ in range(2):
            params = train(running, 3)
            running.end_epoch()
            assert running.measured
        train(running, 1, params)
        assert not running.measured
    assert running.read()["step"].values.tolist() == [0, 3, 6, 7]
    assert running.read()["epoch"].values.tolist() == [0, 1, 2, 2]


def test_scalars_for_loggers(path):
    with recorder(path) as running:
        train(running, 1)
        found = running.scalars()
    assert found["weight_norm/out.w"] == pytest.approx(float(running.read()["weight_norm"][1, 3]))
    assert all(np.isfinite(value) for value in found.values())
    assert not [name for name in found if name.startswith(("measured", "probe_seconds"))]


def test_scalars_have_names_that_mlflow_accepts(path):
    def twice(params, x):
        return jax.nn.relu(jax.nn.relu(x @ params["first"]) @ params["second"])

    params = {"first": jnp.eye(3), "second": jnp.eye(3)}
    with recorder(path, params, twice, preset="standard") as running:
        found = running.scalars()
    assert {"layer_balance/first to second", "dead_fraction/relu_2"} <= {*found}
    assert all(re.fullmatch(r"[/\w.\- ]*", name) for name in found)


def test_the_page_describes_custom_probes(path):
    with recorder(path, preset=[probe("own", lambda snapshot: {"a": ([], 1.0)})]) as running:
        train(running, 1)
    described = load_run(path).parameters["probe own"]
    assert (described.value, described.description) == ("2 of 2 rows", "own")


@pytest.mark.slow
def test_resuming_continues_without_duplicates(path):
    with recorder(path, preset="standard") as running:
        at_three = train(running, 3)
        train(running, 4, at_three)
    whole = running.read()
    with recorder(path, at_three, preset="standard", resume=3) as running:
        train(running, 4, at_three)
    again = running.read()
    assert again["step"].values.tolist() == list(range(8))
    for name in ("displacement", "hamming_distance", "weight_norm", "update_norm", "kernel_distance"):
        np.testing.assert_allclose(again[name].values, whole[name].values, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
def test_bfloat16_parameters_are_recorded_and_resumed(path):
    params = jax.tree.map(lambda each: each.astype(jnp.bfloat16), PARAMS)
    with recorder(path, params, preset="standard") as running:
        running.step(params)
    with pytest.warns(RecorderWarning, match="initial weights"):  # because they did not change
        resumed = recorder(path, params, preset="standard", resume=1)
    with resumed as running:
        running.step(params)
    run = running.read()
    assert run["displacement"].values[2].tolist() == [0, 0, 0, 0]
    assert run["weight_norm"].dtype == np.float32


@pytest.mark.slow
def test_double_precision_is_recorded_in_double_precision(path):
    with jax.enable_x64(True):
        params = jax.tree.map(lambda each: jnp.asarray(each, jnp.float64), PARAMS)
        with recorder(path, params, reference=(X.astype(float), LABELS)) as running:
            running.step(params, gradients=params)
    for name in ("weight_norm", "gradient_norm", "update_norm", "displacement"):
        assert running.read()[name].dtype == np.float64


def test_one_recorder_for_a_folder(path):
    first = recorder(path)
    for resume in (None, 0):
        with pytest.raises(InputError, match="another recorder"):
            recorder(path, resume=resume)
    first.close()
    with pytest.raises(InputError, match="exists"):
        recorder(path)


def test_a_loss_that_is_not_finite_is_named_once_or_raised(path):
    with pytest.warns(RecorderWarning, match="not finite at or before step 1") as found, recorder(path) as running:
        running.step(PARAMS, loss=jnp.nan)
    assert len(found) == 1
    with recorder(path.with_name("two.zarr"), strict=True) as running, pytest.raises(InputError, match="not finite"):
        running.step(PARAMS, loss=np.inf)


def test_strict_recorders_raise_the_error_of_a_probe(path):
    def measure(snapshot):
        raise ZeroDivisionError("no probe")

    with pytest.raises(ZeroDivisionError):
        recorder(path, preset=[probe("bad", measure)], strict=True)
    assert not path.exists()
    with pytest.warns(RecorderWarning, match="'bad'"), recorder(path, preset=["weights", probe("bad", measure)]):
        pass


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"layers": ["none"]}, "layers"),
        ({"readout": "out.v"}, "readout"),
        ({"readout": "out.w", "layout": "outputs_inputs"}, "readout"),
        ({"readout": "out.w", "readout_bias": "b"}, "readout_bias"),
        ({"readout": "out.w", "function": lambda params, x: apply(params, x)[0]}, "readout"),
        ({"function": lambda params, x: "text"}, "apply"),
        ({"function": lambda params, x: x @ params["lost"]}, "apply"),
        ({"activations": lambda params, x: {"z": x[0, 0]}}, "activations"),
        ({"features": lambda params, x: x}, "features"),
        ({"reference": (X[:1], LABELS[:1])}, "reference"),
        ({"params": {"name": 3}}, "params"),
        ({"parameters": ["nothing.*"]}, "params"),
        ({"preset": "heavy"}, "preset"),
        ({"params": {"a.b": jnp.ones(2), "a": {"b": jnp.ones(2)}}}, "params"),
    ],
)
def test_errors_name_the_argument(path, options, argument):
    with pytest.raises(InputError) as error:
        recorder(path, **options)
    assert error.value.argument == argument
    assert not path.exists()


def test_parameters_of_another_structure_are_rejected(path):
    with recorder(path) as running:
        with pytest.raises(InputError, match="the structure of params differs"):
            running.step({"in": PARAMS["in"]})
        running.step(PARAMS)

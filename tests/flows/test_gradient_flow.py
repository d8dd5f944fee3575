import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.errors import DivergenceError, InputError
from dynascope.flows import GradientFlow, Solver, gradient_flow
from dynascope.networks import DeepLinear, TwoLayer
from dynascope.tasks import Task, regression
from dynascope.training import Descent, descend


def exact(target_map):
    """White inputs, whose targets are the linear map of them exactly."""
    return regression(samples=6, input_covariance=np.ones(3), target_map=target_map, exact_moments=True, seed=1)


# Problems, networks and ensembles have the same shapes throughout, so that few programs are compiled: TwoLayer(3, 4, 2)
# in eight members or one, recorded at as many times, with the same stops and statistics if any.
TASK = exact([[1.0, 0.3], [-0.5, 0.8], [0.25, -0.4]])
SAVE = 801


def network_of(seed, **options):
    return TwoLayer(3, 4, 2, seed=seed, **options)


def one_neuron(first, second):
    """A network of which one neuron has weights; the others have none, and never move."""
    weights = np.zeros((3, 4)), np.zeros((4, 2))
    weights[0][:, 0], weights[1][0] = first, second
    return eqx.tree_at(lambda n: (n.first, n.second), network_of(0), weights)


def coefficients(unit, network):
    return network.first @ network.second[:, 0] / unit


def in_units(unit):
    return {"coefficient": (jax.tree_util.Partial(coefficients, np.array(unit)), ["feature"])}


# Targets that no run reaches; a test sets its own.
STOPPING = {
    "save": 31,
    "loss_target": 1e-300,
    "stationarity": 1e-300,
    "statistics": in_units(1.0),
}


class Singular(eqx.Module):
    """√w·x: the flow reaches w = 0 at infinite speed if it must go below, and has no start at w < 0."""

    w: np.ndarray

    def __call__(self, x):
        return jnp.sqrt(self.w) * x[:, :1]


def singular_task(target):
    return Task([[1.0], [1.0]], [[target], [target]])


@pytest.mark.slow
def test_one_layer_follows_the_exponential_of_the_input_moment():
    task = Task([[1.0, 0.5], [-0.3, 2.0], [0.7, -1.1]], [[1.0], [-0.5], [0.8]])
    network = DeepLinear((2, 1), seed=3)
    record = gradient_flow(task, network, GradientFlow(duration=4.0, solver=Solver(relative_tolerance=1e-9), save=9))
    values, axes = np.linalg.eigh(task.input_moment)
    best = np.linalg.lstsq(task.inputs, task.targets, rcond=None)[0]
    start = axes.T @ (network.weights[0] - best)
    for time, loss in zip(record.time.to_numpy(), record.loss.to_numpy(), strict=True):
        weights = best + axes @ (np.exp(-values * time)[:, None] * start)
        expected = np.sum((task.inputs @ weights - task.targets) ** 2) / (2 * task.samples)
        # Errors add up to the tolerance times the length of the path.
        assert loss == pytest.approx(expected, rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("solver", "accuracy"),
    [
        ("explicit", 1e-5),
        pytest.param("stabilised", 1e-2, marks=pytest.mark.slow),
        pytest.param("stiff", 1e-3, marks=pytest.mark.slow),
    ],
)
def test_a_balanced_mode_is_the_logistic_function(solver, accuracy):
    network, task = one_neuron([1, 0, 0], [1, 0]), exact([[2.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    record = gradient_flow(task, network, GradientFlow(duration=8.0, solver=solver, save=SAVE), scale=1e-4)
    strength = 2 / (1 + (2 / 1e-8 - 1) * np.exp(-4 * record.time.to_numpy()))
    # The stiff solver's tolerance is relative to the weights, which start at a ten-thousandth of their final size.
    assert np.abs(record.loss.to_numpy() - (2 - strength) ** 2 / 2).max() < accuracy * 2


@pytest.mark.slow
def test_a_single_neuron_has_the_weights_of_the_exact_solution():
    network, task = one_neuron([0.2, -0.1, 0.4], [0.3, 0.0]), exact([[1.0, 0.0], [-0.5, 0.0], [0.25, 0.0]])
    _, end = gradient_flow(
        task,
        network,
        GradientFlow(duration=1.0, solver=Solver(relative_tolerance=1e-10), save=SAVE),
        return_networks=True,
    )
    # Independent integration at relative tolerance 1e-12, printed to twelve digits.
    assert end.second[0] == pytest.approx([0.686133339873, 0], abs=1e-9)
    assert end.first[:, 0] == pytest.approx([0.576684221554, -0.288342110777, 0.418417370396], abs=1e-9)
    assert not end.first[:, 1:].any()


@pytest.mark.slow
def test_motion_far_below_the_size_of_the_weights_is_followed():
    # From 1e-10, the second mode grows for a long time beside a first mode of size one.
    task = exact([[4.0, 0.0], [0.0, 1.0], [0.0, 0.3]])
    levels = [4.0, 0.25]
    passages = []
    for tolerance in (1e-6, 1e-10):
        record = gradient_flow(
            task,
            network_of(2),
            GradientFlow(duration=26.0, solver=Solver(relative_tolerance=tolerance), save=SAVE),
            scale=1e-10,
        )
        passages.append(np.interp(np.negative(levels), -record.loss.to_numpy(), record.time.to_numpy()))
    # A thousand times the tolerance, for the steps on the way.
    assert passages[0] == pytest.approx(passages[1], rel=1e-3)


@pytest.mark.slow
@given(seed=st.integers(0, 10_000), scale=st.floats(0.01, 1.5))
@settings(max_examples=12)
def test_loss_never_increases(seed, scale):
    loss = gradient_flow(
        TASK,
        network_of(seed),
        GradientFlow(duration=10.0, solver=Solver(relative_tolerance=1e-6), save=SAVE),
        scale=scale,
    ).loss.to_numpy()
    assert np.all(np.isfinite(loss))
    # A step may miss by 1e-6 of the weights, and the loss of a smooth network by as much.
    assert np.all(np.diff(loss) <= 1e-6 * loss[0])


@pytest.mark.slow
def test_a_flow_that_slides_along_a_kink_agrees_with_small_steps():
    network = network_of(8, activation="relu")
    flow, end = gradient_flow(
        TASK, network, GradientFlow(duration=6.0, solver=Solver(relative_tolerance=1e-6), save=7), return_networks=True
    )
    # A neuron of this network settles on the boundary of a sample, where its gradient changes sign.
    assert np.abs(TASK.inputs @ end.first).min() < 1e-3
    steps = descend(TASK, network, Descent(learning_rate=1e-3, steps=6_000, save=np.arange(0, 6_001, 1_000)))
    # An error of order η of the steps, and as much from the kinks.
    assert flow.loss.to_numpy() == pytest.approx(steps.loss.to_numpy(), abs=1e-3 * float(flow.loss[0]))


@pytest.mark.slow
@given(rate=st.floats(0.1, 10.0))
@settings(max_examples=5)
def test_a_learning_rate_rescales_time(rate):
    options = {"save": SAVE, "solver": Solver(relative_tolerance=1e-8)}
    plain = gradient_flow(TASK, network_of(1), GradientFlow(duration=2.0, **options))
    rescaled = gradient_flow(TASK, network_of(1), GradientFlow(duration=2.0 / rate, learning_rate=rate, **options))
    assert rescaled.loss.to_numpy() == pytest.approx(plain.loss.to_numpy(), rel=1e-6)


@pytest.mark.slow
def test_the_normalised_flow_of_degree_two_is_the_plain_one():
    methods = [GradientFlow(duration=9.0, normalised=each, save=SAVE) for each in (False, True)]
    plain, normalised = (gradient_flow(TASK, network_of(1), method, scale=0.1) for method in methods)
    np.testing.assert_allclose(plain["loss"], normalised["loss"], rtol=1e-9)
    assert normalised.attrs["flow"] == "homogeneity-normalised gradient flow"


@pytest.mark.slow
def test_layer_rates_conserve_the_weighted_imbalance():
    network = network_of(4)
    rates = {"first": 1.0, "second": 0.1}
    _, end = gradient_flow(
        TASK,
        network,
        GradientFlow(duration=5.0, learning_rate=rates, solver=Solver(relative_tolerance=1e-9)),
        return_networks=True,
    )
    imbalance = [net.first.T @ net.first / 1.0 - net.second @ net.second.T / 0.1 for net in (network, end)]
    assert not np.allclose(network.first, end.first, atol=0.01)
    # The solver does not conserve it exactly; the tolerance, divided by the smaller rate, bounds the drift.
    assert np.abs(imbalance[0] - imbalance[1]).max() < 1e-7


@pytest.mark.slow
def test_members_of_an_ensemble_equal_single_runs():
    networks = [network_of(seed) for seed in range(2)]
    options = {"duration": 3.0, "solver": Solver(relative_tolerance=1e-6), **STOPPING}
    method = GradientFlow(learning_rate=[0.3, 1.0], **options)
    record, ends = gradient_flow(TASK, networks, method, scale=[0.5, 1.0], return_networks=True)
    assert record.loss.dims == ("seed", "scale", "learning_rate", "time")
    assert ends.first.shape == (2, 2, 2, 3, 4)
    for place in [(0, 0, 0), (1, 1, 0), (1, 0, 1), (0, 1, 1)]:
        seed, scale, rate = place
        method = GradientFlow(learning_rate=[0.3, 1.0][rate], **options)
        single, end = gradient_flow(TASK, networks[seed], method, scale=[0.5, 1.0][scale], return_networks=True)
        # The same steps with sums in another order: rounding, multiplied over some hundred steps.
        assert record.loss.to_numpy()[place] == pytest.approx(single.loss.to_numpy(), abs=1e-10)
        assert ends.first[place] == pytest.approx(end.first, abs=1e-10)


@pytest.mark.slow
def test_a_second_call_has_the_numbers_that_its_statistics_hold():
    one, other = (
        gradient_flow(TASK, network_of(0), GradientFlow(duration=1.0, **STOPPING | {"statistics": in_units(unit)}))
        for unit in (1.0, 2.0)
    )
    np.testing.assert_array_equal(other.coefficient, one.coefficient / 2)


@pytest.mark.slow
def test_each_member_stops_on_its_own_and_holds_its_value():
    scales = np.geomspace(1e-3, 0.3, 8)
    record = gradient_flow(
        TASK, network_of(1), GradientFlow(duration=60.0, **STOPPING | {"loss_target": 1e-6}), scale=scales
    )
    stops = record.stop_time.to_numpy()
    assert np.all(np.diff(stops) < 0)
    assert stops[0] < 60.0
    assert set(record.stop_reason.to_numpy()) == {"loss_target"}
    for member, stop in enumerate(stops):
        after = record.loss.to_numpy()[member, record.time.to_numpy() > stop]
        assert np.all(after == after[0])
        assert 0 < after[0] < 1e-6


@pytest.mark.slow
def test_a_stationary_member_stops_and_another_runs_to_the_end():
    record = gradient_flow(
        TASK,
        network_of(1),
        GradientFlow(
            duration=40.0, learning_rate=[1e-3, *np.geomspace(0.8, 2.0, 7)], **STOPPING | {"stationarity": 1e-5}
        ),
    )
    assert list(record.stop_reason.to_numpy()) == ["duration", *["stationarity"] * 7]
    assert record.stop_time.to_numpy()[0] == 40.0
    # For ‖∇L‖ ≤ ε the loss of this well-conditioned problem is of order ε².
    assert np.all(record.loss.to_numpy()[1:, -1] < 1e-9)
    assert np.all(np.isfinite(record.loss))


@pytest.mark.slow
def test_a_start_at_the_target_stays_there():
    record = gradient_flow(TASK, network_of(0), GradientFlow(duration=5.0, **STOPPING | {"loss_target": 1e6}))
    assert float(record.stop_time) == 0.0
    assert np.ptp(record.loss.to_numpy()) == 0.0


@pytest.mark.slow
def test_statistics_are_recorded_with_their_dimensions():
    network, scales = network_of(0), np.geomspace(0.01, 0.1, 8)
    record = gradient_flow(
        TASK, network, GradientFlow(duration=60.0, **STOPPING | {"save": np.linspace(0, 60, 31)}), scale=scales
    )
    assert record.coefficient.dims == ("scale", "time", "feature")
    assert list(record.feature.to_numpy()) == ["x1", "x2", "x3"]
    # The default tolerance, and what is left of the slowest mode at the end.
    assert record.coefficient.to_numpy()[-1, -1] == pytest.approx([1.0, -0.5, 0.25], abs=1e-2)
    start = network.first @ network.second[:, 0]
    assert record.coefficient.to_numpy()[:, 0] == pytest.approx(np.outer(scales**2, start), rel=1e-12)


@pytest.mark.parametrize("dtype", [pytest.param("float32", marks=pytest.mark.slow), "float64"])
def test_the_precision_of_the_weights_is_kept_and_no_setting_changes(dtype):
    before = jax.config.jax_enable_x64
    network = jax.tree.map(lambda w: w.astype(dtype), network_of(0))
    record, end = gradient_flow(TASK, network, GradientFlow(duration=1.0, save=SAVE), return_networks=True)
    assert record.loss.dtype == end.first.dtype == dtype
    assert jax.config.jax_enable_x64 == before
    assert np.asarray(jnp.ones(1)).dtype == ("float64" if before else "float32")


@pytest.mark.slow
def test_a_start_that_is_not_finite_is_named():
    networks = [Singular(np.array(1.0)), Singular(np.array(-1.0))]
    with pytest.raises(DivergenceError, match=r"not finite at time 0 for 1 of 2 members \(seed 1\)") as caught:
        gradient_flow(singular_task(2.0), networks, GradientFlow(duration=1.0))
    assert caught.value.time == 0.0


@pytest.mark.slow
def test_a_singularity_is_reported_with_its_time():
    with pytest.raises(DivergenceError, match="step size underflowed") as caught:
        gradient_flow(singular_task(-1.0), [Singular(np.array(1.0))] * 2, GradientFlow(duration=5.0))
    # w' = −(√w + 1)/(2√w) from w = 1 meets w = 0 after ∫₀¹ 4s²/(s + 1) ds, up to a step too small to take.
    assert caught.value.time == pytest.approx(2 * (2 * np.log(2) - 1), abs=1e-3)


@pytest.mark.slow
def test_too_few_steps_are_reported_with_a_remedy():
    with pytest.raises(DivergenceError, match=r"max_steps was reached \(3\).*raise max_steps"):
        gradient_flow(TASK, network_of(0), GradientFlow(duration=100.0, solver=Solver(max_steps=3)))


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"duration": 0.0}, "duration"),
        ({}, "duration"),
        ({"duration": 1.0, "normalised": "yes"}, "normalised"),
        ({"duration": 1.0, "solver": 3}, "solver"),
        ({"duration": 1.0, "solver": "exact"}, "solver"),
        ({"duration": 1.0, "learning_rate": [1.0, np.inf]}, "learning_rate"),
        ({"duration": 1.0, "save": 1}, "save"),
        ({"duration": 1.0, "save": [0.0, 2.0]}, "save"),
        ({"duration": 1.0, "save": [0.5, 0.5]}, "save"),
        ({"duration": 1.0, "loss_target": 0.0}, "loss_target"),
        ({"duration": 1.0, "stationarity": -1.0}, "stationarity"),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_bad_input_names_the_argument(options, argument):
    with pytest.raises(InputError) as caught:
        gradient_flow(TASK, network_of(0), GradientFlow(**options))
    assert caught.value.argument == argument


@pytest.mark.parametrize("scale", [-1.0, []])
def test_a_scale_that_is_not_positive_is_named(scale):
    with pytest.raises(InputError) as caught:
        gradient_flow(TASK, network_of(0), GradientFlow(duration=1.0), scale=scale)
    assert caught.value.argument == "scale"


@pytest.mark.usefixtures("unchecked_types")
def test_another_method_is_named():
    with pytest.raises(InputError) as caught:
        gradient_flow(TASK, network_of(0), Descent(learning_rate=0.1, steps=3))
    assert caught.value.argument == "method"


@pytest.mark.parametrize(
    ("field", "value"), [("relative_tolerance", 0.0), ("absolute_tolerance", -1.0), ("max_steps", 0)]
)
def test_numbers_of_a_solver_outside_of_their_domain_are_named(field, value):
    with pytest.raises(InputError) as caught:
        Solver(**{field: value})
    assert caught.value.argument == field


@pytest.mark.usefixtures("unchecked_types")
def test_an_unknown_solver_is_refused():
    with pytest.raises(InputError, match=r"'automatic'.*'exact'.*'explicit'.*'stabilised'.*'stiff'.*'fastest'"):
        gradient_flow(TASK, network_of(0), GradientFlow(duration=1.0, solver="magic"))


@pytest.mark.slow
def test_the_solver_that_is_chosen_on_the_way_takes_the_same_way():
    def method(solver):
        return GradientFlow(duration=40.0, solver=Solver(solver, relative_tolerance=1e-6), save=[1.0, 5.0, 40.0])

    network, task = TwoLayer(2, 3, 2), Task(np.eye(2), np.diag([2.0, 1.0]))
    one, other = (gradient_flow(task, network, method(solver), scale=0.1) for solver in ("fastest", "explicit"))
    # The same steps, to rounding, which the last decades of convergence enlarge.
    np.testing.assert_allclose(one["loss"], other["loss"], rtol=1e-9, atol=1e-12)
    with pytest.raises(InputError, match="ensemble"):
        gradient_flow(task, [network, network], method("fastest"))

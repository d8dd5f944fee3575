import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.errors import DivergenceError, InputError
from dynascope.flows import descend, gradient_flow
from dynascope.networks import DeepLinear, DiagonalLinear, TwoLayer
from dynascope.tasks import Task, regression

TASK = Task([[1.0, 0.5], [-0.3, 2.0], [0.7, -1.1]], [[1.0], [-0.5], [0.8]], name="three points")
EXACT = regression(
    samples=6, input_covariance=np.ones(3), target_map=[[1.0], [-0.5], [0.25]], exact_moments=True, seed=1
)


def squared_weights(network):
    return jnp.sum(network.first**2)


class Singular(eqx.Module):
    """√w·x: the flow reaches w = 0 at infinite speed if it must go below, and has no start at w < 0."""

    w: np.ndarray

    def __call__(self, x):
        return jnp.sqrt(self.w) * x[:, :1]


def singular_task(target):
    return Task([[1.0], [1.0]], [[target], [target]])


def test_one_layer_follows_the_exponential_of_the_input_moment():
    network = DeepLinear((2, 1), seed=3)
    record = gradient_flow(network, TASK, duration=4.0, save=9, relative_tolerance=1e-9)
    values, axes = np.linalg.eigh(TASK.input_moment)
    best = np.linalg.lstsq(TASK.inputs, TASK.targets, rcond=None)[0]
    start = axes.T @ (network.weights[0] - best)
    for time, loss in zip(record.time.to_numpy(), record.loss.to_numpy(), strict=True):
        weights = best + axes @ (np.exp(-values * time)[:, None] * start)
        exact = np.sum((TASK.inputs @ weights - TASK.targets) ** 2) / (2 * TASK.samples)
        # Errors add up to the tolerance times the length of the path.
        assert loss == pytest.approx(exact, rel=1e-8)


@pytest.mark.parametrize(("solver", "accuracy"), [("explicit", 1e-5), ("stabilised", 1e-2), ("stiff", 1e-3)])
def test_a_balanced_mode_is_the_logistic_function(solver, accuracy):
    network = eqx.tree_at(lambda n: (n.first, n.second), TwoLayer(1, 1, 1), (np.ones((1, 1)), np.ones((1, 1))))
    task = Task([[1.0], [-1.0]], [[2.0], [-2.0]])
    record = gradient_flow(network, task, duration=8.0, scale=1e-4, save=33, solver=solver)
    strength = 2 / (1 + (2 / 1e-8 - 1) * np.exp(-4 * record.time.to_numpy()))
    # The stiff solver's tolerance is relative to the weights, which start at a ten-thousandth of their final size.
    assert np.abs(record.loss.to_numpy() - (2 - strength) ** 2 / 2).max() < accuracy * 2


def test_a_single_neuron_has_the_weights_of_the_exact_solution():
    network = eqx.tree_at(
        lambda n: (n.first, n.second), TwoLayer(3, 1, 1), (np.array([[0.2], [-0.1], [0.4]]), np.array([[0.3]]))
    )
    _, end = gradient_flow(network, EXACT, duration=1.0, relative_tolerance=1e-10, return_networks=True)
    # Independent integration at relative tolerance 1e-12, printed to twelve digits.
    assert end.second[0, 0] == pytest.approx(0.686133339873, abs=1e-9)
    assert end.first[:, 0] == pytest.approx([0.576684221554, -0.288342110777, 0.418417370396], abs=1e-9)


def test_motion_far_below_the_size_of_the_weights_is_followed():
    # From 1e-10, the second mode grows for a long time beside a first mode of size one.
    task = Task(np.sqrt(2) * np.eye(2), np.sqrt(2) * np.diag([4.0, 1.0]))
    network = TwoLayer(2, 3, 2, seed=2)
    levels = [4.0, 0.25]
    passages = []
    for tolerance in (1e-6, 1e-10):
        record = gradient_flow(network, task, duration=40.0, scale=1e-10, save=4001, relative_tolerance=tolerance)
        passages.append(np.interp(np.negative(levels), -record.loss.to_numpy(), record.time.to_numpy()))
    # A thousand times the tolerance, for the steps on the way.
    assert passages[0] == pytest.approx(passages[1], rel=1e-3)


@given(seed=st.integers(0, 10_000), scale=st.floats(0.01, 1.5))
@settings(max_examples=12)
def test_loss_never_increases(seed, scale):
    network = TwoLayer(2, 4, 1, seed=seed)
    loss = gradient_flow(network, TASK, duration=10.0, scale=scale, save=20, relative_tolerance=1e-6).loss.to_numpy()
    assert np.all(np.isfinite(loss))
    # A step may miss by 1e-6 of the weights, and the loss of a smooth network by as much.
    assert np.all(np.diff(loss) <= 1e-6 * loss[0])


def test_a_flow_that_slides_along_a_kink_agrees_with_small_steps():
    # The first neuron of this network settles on the boundary of a sample, where its gradient changes sign.
    network = TwoLayer(2, 4, 1, activation="relu", seed=17)
    flow = gradient_flow(network, TASK, duration=6.0, save=13)
    steps = descend(network, TASK, steps=60_000, learning_rate=1e-4, record_steps=np.arange(0, 60_001, 5_000))
    # An error of order η of the steps, and as much from the kinks.
    assert flow.loss.to_numpy() == pytest.approx(steps.loss.to_numpy(), abs=1e-3 * float(flow.loss[0]))


@given(rate=st.floats(0.1, 10.0))
@settings(max_examples=5)
def test_a_learning_rate_rescales_time(rate):
    network = TwoLayer(2, 4, 1, seed=1)
    plain = gradient_flow(network, TASK, duration=2.0, save=5, relative_tolerance=1e-8)
    rescaled = gradient_flow(network, TASK, duration=2.0 / rate, learning_rate=rate, save=5, relative_tolerance=1e-8)
    assert rescaled.loss.to_numpy() == pytest.approx(plain.loss.to_numpy(), rel=1e-6)


def test_layer_rates_conserve_the_weighted_imbalance():
    network = TwoLayer(2, 3, 1, seed=4)
    rates = {"first": 1.0, "second": 0.1}
    _, end = gradient_flow(
        network, TASK, duration=5.0, learning_rate=rates, relative_tolerance=1e-9, return_networks=True
    )
    imbalance = [net.first.T @ net.first / 1.0 - net.second @ net.second.T / 0.1 for net in (network, end)]
    assert not np.allclose(network.first, end.first, atol=0.01)
    # The solver does not conserve it exactly; the tolerance, divided by the smaller rate, bounds the drift.
    assert np.abs(imbalance[0] - imbalance[1]).max() < 1e-7


def test_members_of_an_ensemble_equal_single_runs():
    networks = [TwoLayer(2, 4, 1, activation="relu", seed=seed) for seed in range(3)]
    options = {"duration": 3.0, "save": 7, "relative_tolerance": 1e-6}
    record, ends = gradient_flow(
        networks, TASK, scale=[0.5, 1.0], learning_rate=[0.3, 1.0], return_networks=True, **options
    )
    assert record.loss.dims == ("seed", "scale", "learning_rate", "time")
    assert ends.first.shape == (3, 2, 2, 2, 4)
    for place in [(0, 0, 0), (1, 1, 0), (2, 0, 1), (2, 1, 1)]:
        seed, scale, rate = place
        single, end = gradient_flow(
            networks[seed],
            TASK,
            scale=[0.5, 1.0][scale],
            learning_rate=[0.3, 1.0][rate],
            return_networks=True,
            **options,
        )
        # The same steps with sums in another order: rounding, multiplied over some hundred steps.
        assert record.loss.to_numpy()[place] == pytest.approx(single.loss.to_numpy(), abs=1e-10)
        assert ends.first[place] == pytest.approx(end.first, abs=1e-10)


def test_a_second_call_does_not_compile_again():
    traces = []

    def counted(network):
        traces.append(1)
        return squared_weights(network)

    def run(scales, duration):
        return gradient_flow(
            TwoLayer(2, 4, 1),
            TASK,
            duration=duration,
            scale=scales,
            save=5,
            loss_target=1e-3 / duration,
            statistics={"norm": (counted, ())},
        )

    run([0.1, 0.2, 0.3], 1.0)
    once = len(traces)
    run([0.4, 0.5, 0.6], 2.0)
    assert once == len(traces) > 0


def test_each_member_stops_on_its_own_and_holds_its_value():
    record = gradient_flow(
        TwoLayer(3, 5, 1, seed=1), EXACT, duration=30.0, scale=[1e-3, 0.3], loss_target=1e-6, save=31
    )
    slow, fast = record.stop_time.to_numpy()
    assert fast < slow < 30.0
    assert list(record.stop_reason.to_numpy()) == ["loss_target", "loss_target"]
    for member, stop in enumerate((slow, fast)):
        after = record.loss.to_numpy()[member, record.time.to_numpy() > stop]
        assert np.all(after == after[0])
        assert 0 < after[0] < 1e-6


def test_a_stationary_member_stops_and_another_runs_to_the_end():
    record = gradient_flow(
        TwoLayer(3, 5, 1, seed=1), EXACT, duration=20.0, learning_rate=[1e-3, 1.0], stationarity=1e-5, save=11
    )
    assert list(record.stop_reason.to_numpy()) == ["duration", "stationarity"]
    assert record.stop_time.to_numpy()[0] == 20.0
    # For ‖∇L‖ ≤ ε the loss of this well-conditioned problem is of order ε².
    assert record.loss.to_numpy()[1, -1] < 1e-9
    assert np.all(np.isfinite(record.loss))


def test_a_start_at_the_target_stays_there():
    record = gradient_flow(TwoLayer(3, 5, 1), EXACT, duration=5.0, loss_target=1e6, save=3)
    assert float(record.stop_time) == 0.0
    assert np.ptp(record.loss.to_numpy()) == 0.0


def test_statistics_are_recorded_with_their_dimensions():
    record = gradient_flow(
        DiagonalLinear(3),
        EXACT,
        duration=20.0,
        scale=[0.01, 0.1],
        save=[0.0, 5.0, 20.0],
        statistics={"coefficient": (lambda network: network.coefficients, ["feature"])},
    )
    assert record.coefficient.dims == ("scale", "time", "feature")
    assert list(record.feature.to_numpy()) == ["x1", "x2", "x3"]
    # The default tolerance, and a residual of exp(−20·0.25·2) of the slowest mode at the end.
    assert record.coefficient.to_numpy()[1, -1] == pytest.approx([1.0, -0.5, 0.25], abs=1e-2)
    assert np.all(record.coefficient.to_numpy()[:, 0] == 0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_precision_of_the_weights_is_kept_and_no_setting_changes(dtype):
    before = jax.config.jax_enable_x64
    network = jax.tree.map(lambda w: w.astype(dtype), TwoLayer(2, 4, 1))
    record, end = gradient_flow(network, TASK, duration=1.0, save=3, return_networks=True)
    assert record.loss.dtype == end.first.dtype == dtype
    assert jax.config.jax_enable_x64 == before
    assert jnp.ones(1).dtype == ("float64" if before else "float32")


def test_a_start_that_is_not_finite_is_named():
    networks = [Singular(np.array(1.0)), Singular(np.array(-1.0))]
    with pytest.raises(DivergenceError, match=r"not finite at time 0 for 1 of 2 members \(seed 1\)") as caught:
        gradient_flow(networks, singular_task(2.0), duration=1.0)
    assert caught.value.time == 0.0


def test_a_singularity_is_reported_with_its_time():
    with pytest.raises(DivergenceError, match="step size underflowed") as caught:
        gradient_flow(Singular(np.array(1.0)), singular_task(-1.0), duration=5.0)
    # w' = −(√w + 1)/(2√w) from w = 1 meets w = 0 after ∫₀¹ 4s²/(s + 1) ds, up to a step too small to take.
    assert caught.value.time == pytest.approx(2 * (2 * np.log(2) - 1), abs=1e-3)


def test_too_few_steps_are_reported_with_a_remedy():
    with pytest.raises(DivergenceError, match=r"max_steps was reached \(3\).*raise max_steps"):
        gradient_flow(TwoLayer(2, 4, 1), TASK, duration=100.0, max_steps=3)


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"duration": 0.0}, "duration"),
        ({"duration": 1.0, "scale": -1.0}, "scale"),
        ({"duration": 1.0, "scale": []}, "scale"),
        ({"duration": 1.0, "learning_rate": [1.0, np.inf]}, "learning_rate"),
        ({"duration": 1.0, "save": 1}, "save"),
        ({"duration": 1.0, "save": [0.0, 2.0]}, "save"),
        ({"duration": 1.0, "save": [0.5, 0.5]}, "save"),
        ({"duration": 1.0, "loss_target": 0.0}, "loss_target"),
        ({"duration": 1.0, "stationarity": -1.0}, "stationarity"),
        ({"duration": 1.0, "relative_tolerance": 0.0}, "relative_tolerance"),
        ({"duration": 1.0, "absolute_tolerance": -1.0}, "absolute_tolerance"),
        ({"duration": 1.0, "max_steps": 0}, "max_steps"),
    ],
)
def test_bad_input_names_the_argument(options, argument):
    with pytest.raises(InputError) as caught:
        gradient_flow(TwoLayer(2, 4, 1), TASK, **options)
    assert caught.value.argument == argument


@pytest.mark.usefixtures("unchecked_types")
def test_an_unknown_solver_is_refused():
    with pytest.raises(InputError, match="choose 'explicit', 'stabilised' or 'stiff'"):
        gradient_flow(TwoLayer(2, 4, 1), TASK, duration=1.0, solver="magic")

"""Every measurement on numbers that can be checked by hand."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from snapshots import forward, initial, snapshot, values

from dynascope.diagnosis.measurements.activations import measure_activity, measure_flips
from dynascope.diagnosis.measurements.curvature import measure_batches, measure_curvature, measure_exact_kernel
from dynascope.diagnosis.measurements.features import measure_alignment, measure_collapse, measure_features
from dynascope.diagnosis.measurements.gradient_noise import measure_noise_scale
from dynascope.diagnosis.measurements.kernel import measure_kernel
from dynascope.diagnosis.measurements.weights import measure_balance, measure_weights
from dynascope.diagnosis.rows import thinned
from dynascope.diagnosis.snapshot import Initial, MicroBatches
from dynascope.errors import InputError

A, B = np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([12.0])
HADAMARD = np.array([[1.0, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]])


def test_norms_of_weights_updates_and_gradients():
    found = values(
        measure_weights(
            snapshot(
                {"a": A, "b": B},
                initial=initial({"a": A * 0, "b": B - 9}),
                before={"a": A - 1, "b": B - 2},
                gradients={"a": A, "b": -B},
            )
        )
    )
    assert found["weight_norm"] == [5, 12]
    assert found["displacement"] == [5, 9]
    assert found["update_norm"] == [2, 2]
    assert found["gradient_norm"] == [5, 12]
    assert found["total_weight_norm"] == found["total_gradient_norm"] == 13
    assert found["total_update_norm"] == pytest.approx(math.sqrt(8))
    assert found["relative_displacement"] == pytest.approx(math.sqrt(25 + 81) / 3)


def test_unknown_updates_and_gradients_are_nan_in_the_precision_of_the_weights():
    found = measure_weights(snapshot({"a": A.astype(np.float32)}))
    for name in ("update_norm", "gradient_norm"):
        assert found[name][1].dtype == np.float32
        assert np.isnan(found[name][1]).all()
    assert values(found)["relative_displacement"] == 0


def test_half_precision_norms_do_not_overflow():
    found = values(measure_weights(snapshot({"a": np.full(10_000, 300, np.float16)})))
    assert found["weight_norm"] == [30_000]


def test_balance_of_consecutive_matrices():
    found = values(measure_balance(snapshot({"a": A, "b": B, "c": np.array([[5.0]]), "d": np.array([[0.0]])})))
    assert found["layer_balance"] == [0, -1]
    found = values(measure_balance(snapshot({"a": A, "c": np.array([[10.0]])})))
    assert found["layer_balance"] == [pytest.approx(0.6)]


def test_units_with_vanishing_weights_are_rows_or_columns():
    weights = {"w": np.array([[1.0, 0.009, 0.0], [0.0, 0.0, 0.02]])}
    assert values(measure_balance(snapshot(weights)))["vanishing_fraction"] == [0]
    assert values(measure_balance(snapshot(weights, units_last=True)))["vanishing_fraction"] == [pytest.approx(1 / 3)]


def test_a_model_without_matrices_has_no_balance():
    assert measure_balance(snapshot({"b": B})) == {}


def test_dead_and_always_active_units():
    z = np.array([[1.0, -1.0, 0.0, 2.0], [3.0, 1.0, -1.0, -2.0]])
    found = values(measure_activity(snapshot(forward=forward(preactivations={"one": z, "two": -np.abs(z) - 1}))))
    assert found["dead_fraction"] == [0.25, 1]
    assert found["always_on_fraction"] == [0.25, 0]


def test_flipped_activations_in_each_layer_and_in_all():
    z = {"one": np.array([[1.0, -1.0], [1.0, 1.0]]), "two": np.array([[-1.0], [2.0]])}
    before = {"one": np.array([[True, True], [False, True]]), "two": np.array([[False], [True]])}
    found = values(measure_flips(snapshot(forward=forward(preactivations=z), initial=initial(active=before))))
    assert found["layer_hamming_distance"] == [0.5, 0]
    assert found["hamming_distance"] == pytest.approx(2 / 6)


def test_nothing_has_flipped_at_initialisation():
    found = values(measure_flips(snapshot(forward=forward(preactivations={"one": np.ones((3, 2))}))))
    assert found == {"layer_hamming_distance": [0], "hamming_distance": 0}


def test_effective_dimensions_of_orthogonal_features():
    features = HADAMARD[:, :3] * [3.0, 2.0, 1.0]
    found = values(measure_features(snapshot(forward=forward(HADAMARD[:, 1:2], features={"h": features}))))
    entropy = -(0.8 * math.log(0.8) + 0.2 * math.log(0.2))
    assert found["effective_dimension"] == [pytest.approx(1 + math.exp(entropy))]
    assert found["effective_dimension_utilization"] == [pytest.approx(1)]
    assert found["output_dimension"] == [pytest.approx(1)]
    assert "effective_dimension_quality" not in found
    # Centred features have the kernel 4 v₁v₁ᵀ + v₂v₂ᵀ, and the outputs v₁v₁ᵀ, in units of the same norm.
    assert found["kappa_cka"] == [pytest.approx(1 - 4 / math.sqrt(17))]


def test_quality_of_features_that_contain_the_targets():
    found = values(
        measure_features(
            snapshot(
                forward=forward(HADAMARD[:, 1:3], features={"h": HADAMARD * [4.0, 3.0, 2.0, 1.0]}),
                targets=HADAMARD[:, 1:4],
            )
        )
    )
    assert found["effective_dimension_quality"] == [pytest.approx(3)]
    assert found["effective_dimension_utilization"] == [pytest.approx(2)]


def test_alignment_of_features_with_labels():
    labels = np.array([0, 0, 1, 1])
    h = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    layers = {"same": h + 7, "half": h + np.array([[1.0], [-1.0], [1.0], [-1.0]])}
    found = values(measure_alignment(snapshot(forward=forward(np.ones((4, 2)), features=layers), targets=labels)))
    assert found["feature_alignment"] == [pytest.approx(1), pytest.approx(0.5)]


def test_a_layer_that_cannot_be_measured_is_nan_and_reported():
    notes = []
    layers = {"constant": np.ones((4, 2)), "good": HADAMARD[:, :2]}
    found = values(measure_features(snapshot(forward=forward(HADAMARD[:, 1:2], features=layers), note=notes.append)))
    assert np.isnan(found["kappa_cka"]).tolist() == [True, False]
    assert len(notes) == 1
    assert "'constant'" in notes[0]


def collapsed(features, weight, bias=None, labels=(0, 0, 1, 1)):
    pass_ = forward(np.ones((4, 2)), features={"h": features}, readout="h", readout_weight=weight, readout_bias=bias)
    return values(measure_collapse(snapshot(forward=pass_, targets=np.array(labels))))


def test_collapse_of_two_classes_on_a_line():
    found = collapsed(np.array([[1.1, 0.0], [0.9, 0.0], [-1.1, 0.0], [-0.9, 0.0]]), np.array([[2.0, 0.0], [-2.0, 0.0]]))
    assert found["nc1"] == pytest.approx(0.01 / 2)  # tr(Σ_W Σ_B⁺)/C
    assert found["nc2_angle"] == pytest.approx(0)
    assert found["nc2_norm"] == pytest.approx(0)
    assert found["nc3"] == pytest.approx(0)
    assert found["nc4"] == 0


def test_a_classifier_that_is_not_collapsed():
    h = np.array([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]])
    found = collapsed(h, np.array([[0.0, 1.0], [0.0, -1.0]]), np.array([0.0, 1.0]))
    assert found["nc3"] == pytest.approx(math.sqrt(2))
    assert found["nc4"] == 0.5


def test_collapse_needs_labels_and_a_readout():
    assert (
        measure_collapse(snapshot(forward=forward(np.ones((4, 2)), features={"h": A}), targets=np.arange(4) % 2)) == {}
    )
    assert measure_collapse(snapshot(forward=forward(np.ones((4, 2)), readout="h"), targets=np.ones((4, 2)))) == {}


def test_targets_of_another_length_are_rejected():
    with pytest.raises(InputError, match="targets of the reference batch have length 3"):
        measure_alignment(snapshot(forward=forward(np.ones((4, 2)), features={"h": A}), targets=np.arange(3)))


def test_distance_of_kernels():
    kernel = np.array([[1.0, 0.0], [0.0, 0.0]])
    found = values(measure_kernel(snapshot(initial=initial(kernel=np.eye(2)), compute_kernel=lambda: 3 * kernel)))
    assert found["kernel_distance"] == pytest.approx(1 - 1 / math.sqrt(2))
    assert found["kernel_trace"] == 1.5
    assert np.isnan(found["kernel_distance_of_halves"])  # one sample in each half
    found = values(measure_kernel(snapshot(compute_kernel=lambda: kernel)))
    assert (found["kernel_distance"], found["kernel_trace"]) == (pytest.approx(0), 0.5)
    blocks = np.kron(np.diag([1.0, 0.0]), np.eye(2)) + np.kron(np.diag([0.0, 1.0]), np.ones((2, 2)))
    found = values(measure_kernel(snapshot(compute_kernel=lambda: blocks)))
    assert found["kernel_distance_of_halves"] == pytest.approx(1 - 1 / math.sqrt(2))


def test_distance_of_exact_kernels():
    start = Initial({}, {}, exact_kernel=np.eye(2))
    now = snapshot(initial=start, compute_exact_kernel=lambda: np.array([[0.0, 2.0], [2.0, 0.0]]))
    assert values(measure_exact_kernel(now)) == {"exact_kernel_distance": pytest.approx(1), "exact_kernel_trace": 0}


def test_noise_scale_of_two_micro_batches():
    # g = (2, 0) and (0, 2): mean ‖g‖² = 4, ‖ḡ‖² = 2, so tr Σ = 8 · 2 · 2 = 32 and ‖∇L‖² = 2 − 32/16 = 0.
    found = values(measure_noise_scale(snapshot(micro_batches=MicroBatches((4.0, 4.0), 2.0, 8))))
    assert found["gradient_noise"] == 32
    assert found["gradient_signal"] == 0
    assert math.isnan(found["gradient_noise_scale"])
    # g = (3, 0) and (1, 0): mean ‖g‖² = 5, ‖ḡ‖² = 4, so tr Σ = 8 · 1 · 2 = 16 and ‖∇L‖² = 4 − 16/16 = 3.
    found = values(measure_noise_scale(snapshot(micro_batches=MicroBatches((9.0, 1.0), 4.0, 8))))
    assert found == {"gradient_signal": 3, "gradient_noise": 16, "gradient_noise_scale": pytest.approx(16 / 3)}


@pytest.mark.parametrize("batches", [None, MicroBatches((4.0,), 4.0, 8)])
def test_noise_scale_needs_two_micro_batches(batches):
    assert np.isnan(list(values(measure_noise_scale(snapshot(micro_batches=batches))).values())).all()


def test_curvatures():
    found = values(measure_curvature(snapshot(compute_curvatures=lambda: np.array([3.0, 1.0]))))
    assert found == {"curvature": [3, 1], "sharpness": 3}


def test_batch_sharpness_is_the_ratio_of_means():
    found = values(measure_batches(snapshot(compute_batches=lambda: (MicroBatches((9.0, 1.0), 4.0, 8), [18.0, 12.0]))))
    assert found == {"batch_sharpness": 3, "reference_noise": 16, "reference_signal": 3}


@pytest.mark.parametrize("measure", [measure_curvature, measure_batches, measure_exact_kernel])
def test_probes_of_the_loss_name_the_missing_criterion(measure):
    with pytest.raises(InputError) as error:
        measure(snapshot())
    assert error.value.argument == "criterion"


@pytest.mark.parametrize("measure", [measure_features, measure_alignment])
def test_ignored_labels_leave_out_their_rows(measure):
    """Padding of a sequence has the label −100, and its features do not count."""

    def found(rows, labels):
        pass_ = forward(np.eye(2)[rows % 2], features={"h": HADAMARD[rows, 1:3]})
        return values(measure(snapshot(forward=pass_, targets=labels)))

    rows = np.array([0, 1, 2, 3, 0, 0])
    labelled = found(rows, np.array([0, 0, 1, 1, -100, -100]))
    alone = found(rows[:4], np.array([0, 0, 1, 1]))
    assert labelled.keys() == alone.keys() > set()
    for name, each in alone.items():
        assert labelled[name] == pytest.approx(each)


def test_collapse_without_ignored_rows():
    h = np.array([[1.1, 0.0], [0.9, 0.0], [-1.1, 0.0], [-0.9, 0.0]])
    weight = np.array([[2.0, 0.0], [-2.0, 0.0]])
    padded = np.vstack([h, [[50.0, 30.0]]])
    pass_ = forward(np.ones((5, 2)), features={"h": padded}, readout="h", readout_weight=weight)
    found = values(measure_collapse(snapshot(forward=pass_, targets=np.array([0, 0, 1, 1, -100]))))
    assert found == pytest.approx(collapsed(h, weight))


def test_labels_that_are_all_ignored_are_rejected():
    with pytest.raises(InputError, match="all labels of the reference batch are -100"):
        measure_alignment(snapshot(forward=forward(np.ones((4, 2)), features={"h": A}), targets=np.full(4, -100)))


def test_a_channel_is_active_if_any_position_is():
    """Thousands of rows of positions: a unit that is active in one of them is not dead."""
    z = -np.ones((128, 64, 3))
    z[5, 33, 1] = 1.0
    found = values(measure_activity(snapshot(forward=forward(preactivations={"conv": z.reshape(-1, 3)}))))
    assert found["dead_fraction"] == [pytest.approx(2 / 3)]


def test_thinned_rows_are_the_same_for_all_libraries_and_no_columns_of_an_image():
    rows = np.arange(128 * 64)
    chosen = thinned(rows)
    assert len(chosen) == 4096 == len(np.unique(chosen))
    np.testing.assert_array_equal(np.asarray(thinned(jnp.asarray(rows))), chosen)
    assert len(np.unique(chosen % 8)) == 8

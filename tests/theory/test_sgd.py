from __future__ import annotations

import jax
import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.theory import SGD


def test_the_same_sample_never_twice_makes_less_noise_and_none_if_all_are_in_a_batch():
    assert SGD(0.1, batch_size=4).noise_share == 0.25
    assert SGD(0.1, batch_size=4, samples=5).noise_share == pytest.approx(0.25 / 4)
    assert SGD(0.1, batch_size=4, samples=4).noise_share == 0
    # Of many samples hardly any comes twice.
    assert SGD(0.1, batch_size=4, samples=10**9).noise_share == pytest.approx(0.25)


def test_the_noise_of_a_batch_is_that_of_all_batches_without_replacement():
    values = np.array([1.0, 4.0, -2.0, 0.5])
    means = [(one + other) / 2 for k, one in enumerate(values) for other in values[k + 1 :]]
    assert np.var(means) == pytest.approx(np.var(values) * SGD(0.1, batch_size=2, samples=4).noise_share)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        *(({"learning_rate": bad}, "learning_rate") for bad in (0.0, -1.0, np.nan, np.inf, "fast", [0.1])),
        *(({"momentum": bad}, "momentum") for bad in (1.0, -0.1, np.nan)),
        *(({"weight_decay": bad}, "weight_decay") for bad in (-1.0, np.inf)),
        *(({"batch_size": bad}, "batch_size") for bad in (0, 2.5)),
        ({"samples": 0}, "samples"),
        ({"batch_size": 5, "samples": 4}, "batch_size"),
    ],
)
def test_bad_settings_are_refused_by_name(changes, argument):
    with pytest.raises(InputError) as caught:
        SGD(**{"learning_rate": 0.1} | changes)
    assert caught.value.argument == argument


@pytest.mark.usefixtures("unchecked_types")
def test_settings_are_numbers_that_jax_does_not_trace():
    assert SGD(np.float32(0.5), batch_size=np.int64(3)) == SGD(0.5, batch_size=3)
    with pytest.raises(InputError, match="learning_rate is traced"):
        jax.eval_shape(lambda rate: SGD(rate).noise_share, 0.1)


def test_laws_that_do_not_depend_on_batches_refuse_their_size():
    sgd = SGD(0.1, momentum=0.5, batch_size=8, samples=20)
    assert sgd.without_batches == SGD(0.1, momentum=0.5)
    sgd.without_batches.require_without_batches()
    with pytest.raises(InputError, match="without_batches"):
        sgd.require_without_batches()

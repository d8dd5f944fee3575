from __future__ import annotations

import numpy as np
import pytest
from tiny_runs import tiny_run

from dynascope.errors import InputError
from dynascope.studies import find_study

LinearAttentionStaircase = find_study("linear-attention")
TINY = LinearAttentionStaircase.tiny


@pytest.fixture(scope="module")
def tiny():
    return tiny_run("linear-attention")


def drawn(seed: int):
    draw = np.random.default_rng(seed)
    return LinearAttentionStaircase(
        **TINY
        | {
            "condition": float(draw.uniform(1.5, 5)),
            "context_length": float(draw.choice([1, 5, 20, np.inf])),
            "scale": float(10 ** draw.uniform(-3.3, -2.3)),
            "seed": seed,
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0])
def test_theory_and_experiment_agree_at_random_fields(seed):
    tree = drawn(seed).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    assert tree.residual["observed_jump_time"].notnull().all()


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-3, 1e-6])
def test_merged_attention_learns_everything_in_one_drop(scale):
    tree = LinearAttentionStaircase(**TINY | {"parametrisation": "merged", "scale": scale}).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    assert tree.predicted.sizes["jump"] == 1
    # Its time is known including the constant; the curve is sampled every 2e-4 of the time of the drop.
    assert tree.quantities["jump_time"].error < 2e-3


@pytest.mark.slow
def test_one_head_stops_at_the_first_plateau():
    tree = LinearAttentionStaircase(**TINY | {"heads": 1}).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    assert tree.predicted.sizes["jump"] == 1
    assert tree.observed["loss"][-1] > 0.1 * tree.observed["loss"][0]


def test_infinite_context_leaves_no_loss():
    predicted = LinearAttentionStaircase(**TINY | {"context_length": np.inf}).predict()
    assert predicted["loss_after"][-1] == 0


@pytest.mark.slow
def test_the_verdict_turns_when_the_heads_are_others(tiny):
    other = LinearAttentionStaircase(**TINY | {"seed": 1})
    wrong = other.predict().record.assign_attrs(scale=tiny.study.scale)
    tree = tiny.study.compared(tiny.observed, wrong)
    assert tree.verdict.outcome == "disagree"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("scale", bad) for bad in (1.0, 0.0, -1.0, np.nan)),
        *(("condition", bad) for bad in (0.5, np.nan, np.inf)),
        *(("context_length", bad) for bad in (0.0, -1.0, np.nan)),
        *(("inputs", bad) for bad in (0, -1)),
        ("heads", 0),
        ("seed", -1),
    ],
)
def test_a_field_out_of_range_is_refused_by_name_when_the_study_is_made(field, value):
    with pytest.raises(InputError) as refusal:
        LinearAttentionStaircase(**TINY | {field: value})
    assert refusal.value.argument == field

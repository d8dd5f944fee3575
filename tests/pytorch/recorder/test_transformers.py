"""The trainer of transformers with a recorder: the same training, one row per update, and records that continue."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from recorded_training import same

from dynascope.probes.kernel.distance_and_alignment import target_alignment
from dynascope.torch import Recorder, TransformersRecorder

TOKENS = torch.arange(16 * 6).reshape(16, 6) * 7 % 11


class Texts(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return len(TOKENS)

    def __getitem__(self, k: int) -> dict[str, torch.Tensor]:
        return {"input_ids": TOKENS[k], "labels": TOKENS[k]}


def gpt() -> Any:
    config = transformers.GPT2Config(
        n_layer=2, n_embd=8, n_head=2, vocab_size=11, n_positions=8, bos_token_id=0, eos_token_id=0
    )
    return transformers.GPT2LMHeadModel(config)


def train(callbacks: list[Any], folder: Any, *, resume: Any = None, **options: Any) -> Any:
    torch.manual_seed(0)
    arguments = transformers.TrainingArguments(
        output_dir=str(folder),
        max_steps=6,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        logging_steps=1,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        save_strategy="steps",
        save_steps=3,
        **options,
    )
    trainer = transformers.Trainer(gpt(), arguments, train_dataset=Texts(), callbacks=callbacks)
    trainer.train(resume_from_checkpoint=resume)
    return trainer


def recorder_of(path: Any, **options: Any) -> Any:
    reference = {"input_ids": TOKENS, "labels": TOKENS}
    return TransformersRecorder(path, **{"reference": reference, "schedule": 1, "verbose": False, **options})


@pytest.mark.slow
def test_training_is_the_same_and_each_update_is_a_row(tmp_path):
    plain = train([], tmp_path / "plain", gradient_checkpointing=True)
    callback = recorder_of(tmp_path / "run.zarr")
    trainer = train([callback], tmp_path / "out", gradient_checkpointing=True)
    assert same(list(plain.model.state_dict().values()), list(trainer.model.state_dict().values()))
    run = callback.recorder.read()
    assert list(run["step"].values) == list(range(7))
    logs = [each for each in trainer.state.log_history if "loss" in each]
    clipped = [min(each["grad_norm"], 1.0) for each in logs]
    np.testing.assert_allclose(run["total_gradient_norm"].values[1:], clipped, rtol=1e-4)
    assert list(run["activation"].values) == ["transformer.h.0.mlp.act", "transformer.h.1.mlp.act"]
    assert list(run["layer"].values) == ["input of lm_head"]
    assert np.isfinite(run["kernel_distance"].values[[0, 1, 2, 3, 6]]).all()
    losses = [each["loss"] for each in logs]
    np.testing.assert_allclose(run["loss"].values[2:], losses[:-1], rtol=1e-3)


@pytest.mark.slow
def test_a_run_that_continues_from_a_checkpoint_continues_its_record(tmp_path):
    whole = recorder_of(tmp_path / "whole.zarr")
    train([whole], tmp_path / "out")
    shutil.copytree(tmp_path / "whole.zarr", tmp_path / "part.zarr")
    part = recorder_of(tmp_path / "part.zarr")
    train([part], tmp_path / "out", resume=str(tmp_path / "out" / "checkpoint-3"))
    one, other = whole.recorder.read(), part.recorder.read()
    assert list(other["step"].values) == list(range(7))
    np.testing.assert_allclose(other["weight_norm"].values, one["weight_norm"].values, rtol=1e-5)


@pytest.mark.slow
def test_features_are_compared_with_the_next_token(tmp_path):
    model = gpt().eval()
    with Recorder(model, tmp_path / "run.zarr", reference={"input_ids": TOKENS, "labels": TOKENS}) as recorder:
        found = float(recorder.read()["feature_alignment"][0, 0])
    with torch.no_grad():
        features = model.transformer(TOKENS).last_hidden_state[:, :-1].reshape(-1, 8)
    targets = torch.nn.functional.one_hot(TOKENS[:, 1:].reshape(-1), 11).float()
    assert found == pytest.approx(float(target_alignment(features @ features.T, targets, centred=True)), rel=1e-4)

"""Training loops of PyTorch against the same run of `descend`, and what an audit says of those with a defect."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from typing import Any

import equinox as eqx
import jax
import numpy as np
import optax
import pytest

from dynascope.errors import InputError
from dynascope.symmetry import Charge, Part, audit
from dynascope.tasks import Task
from dynascope.training import Descent, charge_statistics, descend

torch = pytest.importorskip("torch", reason="PyTorch is an optional extra")
watch_charges = pytest.importorskip("dynascope.torch").watch_charges

DRAW = np.random.default_rng(0)
INPUTS, TARGETS = DRAW.normal(size=(12, 3)), DRAW.normal(size=(12, 2))
STEPS, RATE = 40, 0.05
DECLARED: Any = {"momentum": 0.8, "weight_decay": 0.02}
UNITS = np.arange(4)


def hidden(*paths):
    first, bias, second = paths
    parts = Part(first, UNITS[:, None], -1.0), Part(bias, UNITS, -1.0), Part(second, UNITS[None], 1.0)
    return Charge("rescale", parts, 4)


SYMMETRIES = (
    hidden("['0.weight']", "['0.bias']", "['2.weight']"),
    hidden("['2.weight']", "['2.bias']", "['4.weight']"),
)


class Negated(torch.autograd.Function):
    """The identity, whose backward pass has the wrong sign."""

    @staticmethod
    def forward(context, x):
        return x.clone()

    @staticmethod
    def backward(context, cotangent):
        return -cotangent


class Wrong(torch.nn.ReLU):
    def forward(self, x):
        return Negated.apply(super().forward(x))


def network(dtype=torch.float64):
    torch.manual_seed(7)  # of which every unit is alive
    linear = torch.nn.Linear
    layers = linear(3, 4), torch.nn.ReLU(), linear(4, 4), torch.nn.ReLU(), linear(4, 2)
    return torch.nn.Sequential(*layers).to(dtype)


def sgd(model, **options):
    return torch.optim.SGD(model.parameters(), lr=RATE, **DECLARED, **options)


def loss(model, chosen=slice(None)):
    dtype = next(model.parameters()).dtype
    inputs, targets = (torch.tensor(each, dtype=dtype)[chosen] for each in (INPUTS, TARGETS))
    return 0.5 * (model(inputs) - targets).square().sum(1).mean()


def train(model, optimizer, *, steps=STEPS, change=lambda model: None, **options):
    """The record of a run on batches, with a change of the gradients before each step."""
    with watch_charges(model, optimizer, SYMMETRIES, **options) as watched:
        for step in range(steps):
            optimizer.zero_grad()
            loss(model, slice(step % 3, None, 3)).backward()
            change(model)
            optimizer.step()
    return watched.record()


class Twin(eqx.Module):
    layers: list

    def __call__(self, x):
        for weight, bias in self.layers[:-1]:
            x = jax.nn.relu(x @ weight.T + bias)
        return x @ self.layers[-1][0].T + self.layers[-1][1]


def heavy_ball(rate):
    decay = optax.add_decayed_weights(DECLARED["weight_decay"])
    return optax.chain(decay, optax.sgd(rate, momentum=DECLARED["momentum"]))


@pytest.mark.slow
def test_the_record_is_that_of_descend():
    model = network()
    arrays = [each.numpy(force=True).copy() for each in model.parameters()]
    twin = Twin([(arrays[place], arrays[place + 1]) for place in (0, 2, 4)])
    names = {
        f"['{2 * layer}.{kind}']": f".layers[{layer}][{k}]"
        for layer in range(3)
        for k, kind in enumerate(("weight", "bias"))
    }
    twins = [
        dataclasses.replace(each, parts=tuple(dataclasses.replace(p, path=names[p.path]) for p in each.parts))
        for each in SYMMETRIES
    ]
    with jax.enable_x64(True):
        expected = descend(
            Task(INPUTS, TARGETS),
            twin,
            Descent(
                heavy_ball,
                learning_rate=RATE,
                steps=STEPS,
                save=range(STEPS + 1),
                statistics=charge_statistics(twins, **DECLARED, causes=True),
            ),
        )
    optimizer = sgd(model)
    with watch_charges(model, optimizer, SYMMETRIES, causes=True) as watched:
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss(model).backward()
            optimizer.step()
    found = watched.record()
    assert not found["changed_between"].any()
    for name in expected.data_vars.keys() & found.data_vars.keys():
        ours, theirs = found[name].to_numpy(), expected[name].to_numpy()
        assert found[name].dims == expected[name].dims
        if name == "part_pull_rounding":
            # Updates that are seen are rounded as weights are.
            assert (ours[1:] >= theirs[1:] * (1 - 1e-9)).all()
        else:
            # Of sums of some ten numbers of order one, in another order, over the steps; divided by the rate.
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12, err_msg=str(name))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("nesterov", [False, True])
def test_a_loop_as_declared_is_clean_even_when_clipped_by_its_norm(dtype, nesterov):
    def clip(model):
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.3)

    for change in (lambda model: None, clip):
        model = network(getattr(torch, dtype))
        run = train(model, sgd(model, nesterov=nesterov), change=change, every=7)
        assert run["measured_charge"].dtype == dtype
        assert run["step"].to_numpy().tolist() == [0, 7, 14, 21, 28, 35, 40]
        assert (abs(run["measured_charge"][-1] - run["measured_charge"][0]) > 0.01).any()
        assert audit(run, SYMMETRIES).clean


def by_value(model):
    torch.nn.utils.clip_grad_value_(model.parameters(), 0.02)


def with_groups(model, first, rest):
    groups = [{"params": model[0].parameters(), **first}, {"params": model[2:].parameters(), **rest}]
    return torch.optim.SGD(groups, lr=RATE, **DECLARED)


def layered(model):
    return with_groups(model, {"weight_decay": 0.0}, {})


def adam(model):
    return torch.optim.Adam(model.parameters(), lr=RATE)


DEFECTS = {
    "clipping by value": (sgd, by_value),
    "different weight decay": (layered, lambda model: None),
    "weights changed between steps": (sgd, lambda model: model[2].weight.data.clamp_(-0.3, 0.3)),
    "frozen layer": (sgd, lambda model: model[2].requires_grad_(False)),
    "preconditioner or another rule": (adam, lambda model: None),
    "wrong backward pass": (sgd, lambda model: None),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_of_a_loop_is_found_and_named(name):
    optimizer, change = DEFECTS[name]
    model = network()
    if name == "frozen layer":
        change(model)  # which has no gradients then
    if name == "wrong backward pass":
        model[3] = Wrong()
    found = audit(train(model, optimizer(model), change=change, rule="heavy_ball", **DECLARED, causes=True), SYMMETRIES)
    assert not found.clean
    assert name in [each.name for each in found.causes]


@pytest.mark.slow
@pytest.mark.parametrize("nesterov", [False, True])
def test_clipping_that_begins_late_is_named_by_every_step_and_not_only_the_first(nesterov):
    made, model = itertools.count(), network()
    run = train(
        model,
        sgd(model, nesterov=nesterov),
        change=lambda model: by_value(model) if next(made) >= STEPS // 2 else None,
        causes=True,
    )
    found = audit(run, SYMMETRIES)
    assert [each.name for each in found.causes] == ["clipping by value"]
    assert min(each.first_broken for each in found.findings) == STEPS // 2 + 1


@pytest.mark.slow
def test_batches_that_accumulate_closures_and_skipped_steps_are_one_step_or_none():
    model = network()
    optimizer, scaler = sgd(model), torch.amp.GradScaler("cpu", init_scale=2.0**10)
    with watch_charges(model, optimizer, SYMMETRIES, **DECLARED, causes=True, grad_scaler=scaler) as watched:
        for step in range(STEPS):
            optimizer.zero_grad()
            for start in range(2):
                scaler.scale(loss(model, slice(start, None, 2)) * (np.inf if step == 3 else 0.5)).backward()
            scaler.step(optimizer)
            scaler.update()
    run = watched.record()
    assert run.sizes["step"] == STEPS  # with the start, and without the step that was skipped
    assert audit(run, SYMMETRIES).clean
    # The gradient is that of all batches, and of the loss as it is.
    later = run.isel(step=slice(1, None))
    assert (abs(later["part_pull"] - later["part_slope"]) <= later["part_pull_rounding"]).all()

    optimizer = sgd(model)

    def closure():
        optimizer.zero_grad()
        value = loss(model)
        value.backward()
        return value

    # A tree of tensors is watched as the module is.
    with watch_charges(dict(model.named_parameters()), optimizer, SYMMETRIES, causes=True) as watched:
        for _ in range(5):
            optimizer.step(closure)
    assert audit(watched.record(), SYMMETRIES).clean
    optimizer.step(closure)
    assert watched.record().sizes["step"] == 6  # nothing is left on the optimizer


@pytest.mark.slow
@pytest.mark.parametrize("nesterov", [False, True])
def test_groups_with_rates_and_decays_of_their_own_are_read_off_the_optimizer(nesterov):
    model = network()
    optimizer = with_groups(model, {"lr": 3 * RATE, "weight_decay": 0.0}, {"lr": RATE, "weight_decay": 0.1})
    for group in optimizer.param_groups:
        group["nesterov"] = nesterov
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 2 * STEPS)
    run = train(model, optimizer, change=lambda model: schedule.step() if optimizer.state else None, causes=True)
    assert (abs(run["measured_charge"][-1] - run["measured_charge"][0]) > 0.01).any()
    found = audit(run, SYMMETRIES)
    assert found.clean, found.table
    later = run.isel(step=slice(1, None))
    off = abs(later["part_pull"] - later["part_slope"])
    assert (off <= later["part_pull_rounding"] + later["part_slope_rounding"]).all()
    assert run.attrs["weight_decay"].startswith("['0.bias']: 0, ['0.weight']: 0, ['2.bias']: 0.1")

    def faster(model):
        optimizer.param_groups[0]["lr"] *= 1.01

    model = network()
    optimizer = with_groups(model, {"lr": 3 * RATE}, {})
    with pytest.raises(InputError, match="the ratio of learning rates"):
        train(model, optimizer, change=faster)


def test_a_bias_before_a_normalisation_is_no_alarm_where_nothing_else_is_watched():
    torch.manual_seed(0)
    layers = torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 2)
    model = torch.nn.Sequential(*layers)
    torch.nn.init.zeros_(model[0].bias)
    start = model[3].weight.detach().clone()
    shift = Charge("translation", (Part("['0.bias']", np.arange(8), 1.0),), 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9)
    with watch_charges(model, optimizer, [shift]) as watched:
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss(model).backward()
            optimizer.step()
    run = watched.record()
    assert (run["measured_charge"][-1] != 0).any()  # rounding moves it
    assert audit(run, [shift]).clean
    # The bound is of use: a bias that had a gradient, and moved as other weights do, would stand far above it.
    moved = float((model[3].weight.detach() - start).abs().mean())
    assert (run["charge_bound"][-1] < 1e-2 * moved).all()


@pytest.mark.usefixtures("unchecked_types")
def test_what_cannot_be_watched_is_named():
    model, other = network(), network(torch.float16)
    optimizer = sgd(model)
    used = sgd(copy.deepcopy(model))
    parallel = torch.nn.parallel.DistributedDataParallel
    averaged = parallel.__new__(parallel)  # which has no other processes to ask for
    torch.nn.Module.__init__(averaged)
    averaged.module = model
    cases = [
        ((model, 3, SYMMETRIES), {}, "optimizer"),
        ((model, torch.optim.LBFGS(model.parameters()), SYMMETRIES), {}, "optimizer"),
        ((model, adam(model), SYMMETRIES), {}, "rule"),
        ((model, adam(model), SYMMETRIES), {"rule": "adam"}, "rule"),
        ((model, with_groups(model, {"momentum": 0.5}, {}), SYMMETRIES), {}, "momentum"),
        ((model, with_groups(model, {"lr": 0.0}, {}), SYMMETRIES), {}, "optimizer"),
        ((model, with_groups(model, {"nesterov": True}, {}), SYMMETRIES), {}, "optimizer"),
        ((model, used, SYMMETRIES), {}, "optimizer"),
        ((model, sgd(model, dampening=0.1), SYMMETRIES), {}, "optimizer"),
        ((model, optimizer, []), {}, "symmetries"),
        ((model[:3], optimizer, SYMMETRIES), {}, "model"),
        ((other, sgd(other), SYMMETRIES), {}, "model"),
        ((averaged, optimizer, SYMMETRIES), {"causes": True}, "model"),
        ((torch.compile(averaged), optimizer, SYMMETRIES), {"causes": True}, "model"),
        ((model, optimizer, SYMMETRIES), {"momentum": 1.0}, "momentum"),
        ((model, optimizer, SYMMETRIES), {"every": 0}, "every"),
        ((model, optimizer, SYMMETRIES), {"grad_scaler": 2.0}, "grad_scaler"),
    ]
    for arguments, options, named in cases:
        with pytest.raises(InputError) as caught:
            watch_charges(*arguments, **options)
        assert caught.value.argument == named


@pytest.mark.slow
def test_an_optimizer_that_has_made_steps_or_changes_its_momentum_is_refused():
    model = network()
    optimizer = sgd(model)
    with watch_charges(model, optimizer, SYMMETRIES):
        loss(model).backward()
        optimizer.step()
        optimizer.param_groups[0]["momentum"] = 0.5
        with pytest.raises(InputError, match="momentum of the optimizer changed"):
            optimizer.step()
    with pytest.raises(InputError, match="has already taken steps"):
        watch_charges(model, optimizer, SYMMETRIES)


def test_a_loop_without_steps_has_no_verdict():
    model = network()
    with watch_charges(model, sgd(model), SYMMETRIES) as watched:
        pass
    found = audit(watched.record(), SYMMETRIES)
    assert not found.clean
    assert str(found) == "no step was recorded, so no law was tested"


def test_a_second_optimizer_that_trains_the_model_is_noticed():
    model = network()
    optimizer = sgd(model)
    with watch_charges(model, sgd(model), SYMMETRIES) as watched:
        loss(model).backward()
        optimizer.step()
        assert watched.record().attrs["changed_without_step"]
    record = watched.record()
    found = audit(record, SYMMETRIES)
    assert (found.clean, found.steps, found.changed_without_step) == (False, 0, True)
    assert "without a step of the watched optimizer" in str(found)
    # What happens after the loop does not count.
    with watch_charges(model, sgd(model), SYMMETRIES) as watched:
        pass
    optimizer.step()
    assert not watched.record().attrs["changed_without_step"]


@pytest.mark.slow
def test_the_record_states_no_loss_and_counts_the_steps():
    model = network()
    record = train(model, sgd(model), steps=1)
    assert "½" not in record.attrs["convention"]
    assert not record.attrs["changed_without_step"]
    assert "at 1 recorded step," in str(audit(record, SYMMETRIES))

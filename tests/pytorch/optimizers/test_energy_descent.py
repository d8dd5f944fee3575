"""ECD, ECDSep and BBI for PyTorch follow the JAX versions, and can be saved and resumed."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from dynascope.errors import InputError  # noqa: E402  after the skip without PyTorch
from dynascope.torch import BBI, ECD, ECDSep  # noqa: E402
from dynascope.training import bbi, ecd, ecdsep  # noqa: E402

DRAW = np.random.default_rng(0)
X, Y = DRAW.normal(size=(20, 3)), DRAW.normal(size=(20, 2))
START = {"first": DRAW.normal(size=(3, 5)), "second": DRAW.normal(size=(5, 2)), "bias": DRAW.normal(size=2)}
PAIRS = {
    "ecd": (ECD, ecd, 0.1, {"eta": 20.0, "weight_decay": 0.01}),
    "published ecd": (ECD, ecd, 0.02, {"eta": 5.0, "kick": "euler", "inner_product": "per-tensor"}),
    "euler": (ECD, ecd, 0.02, {"eta": 5.0, "kick": "euler", "target_loss": -1.0}),
    "ecdsep": (ECDSep, ecdsep, 0.02, {"eta": 2.0, "excess_energy": 0.3, "target_loss": -0.5}),
    "bbi": (BBI, bbi, 0.05, {"target_loss": -0.5, "excess_energy": 0.1, "fixed_bounces": 0}),
}


def loss_of(params, x, y, module):
    return 0.5 * ((module.tanh(x @ params["first"]) @ params["second"] + params["bias"] - y) ** 2).mean()


def torch_run(make, steps, params=None, optimizer=None):
    if params is None:
        params = {name: torch.tensor(each, requires_grad=True) for name, each in START.items()}
    if optimizer is None:
        optimizer = make(list(params.values()))
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(params, torch.tensor(X), torch.tensor(Y), torch)
        loss.backward()
        assert optimizer.step(lambda loss=loss: loss) is loss
    return params, optimizer


@pytest.mark.parametrize("name", PAIRS)
def test_a_hundred_steps_equal_those_of_jax(name):
    made, transformation, rate, options = PAIRS[name]
    found, _ = torch_run(lambda params: made(params, rate, **options), 100)
    with jax.enable_x64(True):
        optimizer = transformation(rate, **options)
        params = jax.tree.map(jnp.asarray, START)
        state, update = optimizer.init(params), jax.jit(optimizer.update)
        for _ in range(100):
            value, gradient = jax.value_and_grad(loss_of)(params, X, Y, jnp)
            updates, state = update(gradient, state, params, value=value)
            params = jax.tree.map(jnp.add, params, updates)
    for key, each in params.items():
        assert float(jnp.abs(each - START[key]).max()) > 1e-2
        np.testing.assert_allclose(found[key].detach().numpy(), each, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", PAIRS)
def test_a_saved_run_continues_as_if_it_had_not_been_interrupted(name):
    made, _, rate, options = PAIRS[name]

    def make(params):
        return made(params, rate, **options)

    whole, _ = torch_run(make, 30)
    params, optimizer = torch_run(make, 20)
    other = make(list(params.values()))
    other.load_state_dict(optimizer.state_dict())
    resumed, _ = torch_run(make, 10, params, other)
    for key, each in whole.items():
        assert torch.equal(each, resumed[key])


def test_groups_can_have_different_decay_and_noise_keeps_the_norm():
    params = {name: torch.tensor(each, requires_grad=True) for name, each in START.items()}
    first, *rest = params.values()
    groups = [{"params": [first], "weight_decay": 0.1}, {"params": rest}]
    optimizer = ECD(groups, 0.1, eta=20.0, noise=0.3)
    torch_run(None, 5, params, optimizer)
    lengths = sum(float((optimizer.state[each]["momentum"] ** 2).sum()) for each in params.values())
    assert abs(lengths - 1) < 1e-12


def test_bounces_keep_the_norm_of_the_momentum():
    def make(params, **options):
        return BBI(params, 0.05, excess_energy=0.1, **options)

    def momentum(optimizer, params):
        return torch.cat([optimizer.state[each]["momentum"].flatten() for each in params.values()])

    params, optimizer = torch_run(lambda params: make(params, fixed_bounces=0), 10)
    others, bouncing = torch_run(lambda params: make(params, bounce_interval=10), 10)
    one, two = momentum(optimizer, params), momentum(bouncing, others)
    assert float((one - two).norm()) > 0.01
    np.testing.assert_allclose(one.norm().item(), two.norm().item(), rtol=1e-12)


def test_bad_input_is_named():
    weights = torch.ones(3, requires_grad=True)
    with pytest.raises(InputError, match="closure is missing"):
        ECD([weights], 0.1).step()
    weights.grad = torch.ones(3)
    with pytest.raises(InputError, match="target_loss is above the initial loss by 1"):
        ECDSep([weights], 0.1, target_loss=2.0).step(lambda: torch.tensor(1.0))
    with pytest.raises(InputError, match="groups with different values of lr"):
        BBI([{"params": [weights]}, {"params": [torch.ones(2)], "lr": 0.2}], 0.1)
    with pytest.raises(InputError, match="lr"):
        ECD([weights], 0.0)
    number = torch.ones(1, requires_grad=True)
    number.grad = torch.ones(1)
    with pytest.raises(InputError, match="single number"):
        ECD([number], 0.1).step(lambda: torch.tensor(1.0))

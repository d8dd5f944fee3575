from __future__ import annotations

import pytest

from dynascope.probes.kernel import neural_tangent_kernel

networks = pytest.importorskip("pytorch_networks", reason="PyTorch is an optional extra")
torch = networks.torch
check = pytest.importorskip("dynascope.torch.kernel.checks").check
dense_tracing = pytest.importorskip("dynascope.torch.kernel.dense_tracing")


def dense(apply, params, x):
    """Which parameters are contracted by structure."""
    checked = check(apply, params, x, None, None)
    names = {place: name for name, place in checked.model.tree.items()}
    return {names[use.parameter] for use in checked.uses}


@pytest.mark.parametrize("name", networks.NETWORKS)
def test_layers_are_found_and_what_only_looks_like_them_is_not(name):
    module, x = networks.made(name)
    assert dense(module, None, x) == networks.NETWORKS[name].dense
    assert check(module, None, x, None, None).mapped == networks.NETWORKS[name].mapped


W, V = networks.draw(4, 4), networks.draw(4, 2)
X = networks.draw(3, 4)
# How a weight w enters, and whether it does by products alone.
WAYS = {
    "on the right": (lambda w, x: x @ w, True),
    "on the left": (lambda w, x: (w @ x.T).T, True),
    "on the left of a vector": (lambda w, x: torch.stack([torch.mv(w, each) for each in x]), True),
    "by a method": (lambda w, x: x.matmul(w.t()), True),
    "permuted": (lambda w, x: torch.mm(x, w.permute(1, 0)), True),
    "swapped": (lambda w, x: torch.mm(x, torch.swapaxes(w, 0, 1)), True),
    "scaled twice": (lambda w, x: x @ (2 * -w / 3), True),
    "asked for its shape": (lambda w, x: x @ w / w.shape[0] + w.size(1) * w.stride(0) + float(w.is_complex()), True),
    "in a linear layer by keywords": (lambda w, x: torch.nn.functional.linear(input=x, weight=w), True),
    "as words of a table": (lambda w, x: torch.nn.functional.embedding((x[:, 0] > 0).long(), w), True),
    "twice, once transposed": (lambda w, x: torch.tanh(x @ w) @ w.T, False),
    "also penalised": (lambda w, x: x @ w + (w**2).sum(), False),
    "one over it": (lambda w, x: x @ (1 / w), False),
    "masked": (lambda w, x: x @ (w * torch.ones(4, 4, dtype=w.dtype).tril()), False),
    "its largest": (lambda w, x: x @ w + torch.max(w, dim=0).values, False),
    "with itself": (lambda w, x: x @ (w @ w), False),
    "in an equation": (lambda w, x: torch.einsum("ni,ij->nj", x, w), False),
    "without a gradient once": (lambda w, x: x @ w + x @ w.detach(), False),
    "inside of no_grad once": (lambda w, x: x @ w + torch.no_grad()(lambda: x @ w)(), False),
    "unused": (lambda w, x: x, False),
}


@pytest.mark.parametrize("way", WAYS)
def test_ways_in_which_a_weight_enters(way):
    enter, found = WAYS[way]

    def apply(params, x):
        return torch.tanh(enter(params["w"], x)) @ params["v"]

    params = {"w": W.clone().requires_grad_(), "v": V.clone().requires_grad_()}
    assert dense(apply, params, X) == ({"v", "w"} if found else {"v"})
    expected = networks.brute_force(lambda x: apply(params, x), list(params.values()), X)
    torch.testing.assert_close(neural_tangent_kernel(apply, params, X).values, expected, rtol=1e-10, atol=1e-10)


def test_a_use_that_the_reader_does_not_see_is_found_by_its_gradient(monkeypatch):
    module, x = networks.made("two layers of one weight")
    seen = dense_tracing._Reader._linear
    calls = []

    def blind(self, func, entering, weight):
        calls.append(weight)
        # The first layer of three is taken for one without a weight.
        return func(*entering) if len(calls) % 3 == 1 else seen(self, func, entering, weight)

    monkeypatch.setattr(dense_tracing._Reader, "_linear", blind)
    assert dense(module, None, x) == {"last.weight"}


def test_a_function_that_was_compiled_is_read_as_it_was_written():
    compiled = torch.compile(lambda params, x: x @ params["w"], backend="eager")
    assert dense(compiled, {"w": W}, X) == {"w"}

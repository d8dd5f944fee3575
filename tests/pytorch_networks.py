"""Networks of PyTorch as people write them, each with five examples, and their kernels by brute force."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn

functional = nn.functional


class Network(NamedTuple):
    """A module with its inputs.

    Attributes:
        make: Gives (module, inputs).
        dense: Which of its parameters, by name, are contracted by structure.
        mapped: Whether `torch.func` maps it over examples.
    """

    make: Callable[[], tuple[Any, Any]]
    dense: set[str]
    mapped: bool = True


def made(name: str) -> tuple[Any, Any]:
    """A module and its inputs, the same each time."""
    torch.manual_seed(0)
    module, x = NETWORKS[name].make()
    module = module.double().eval()
    torch.manual_seed(1)
    for buffer in module.buffers():
        if buffer.is_floating_point():
            buffer.uniform_(0.5, 2.0)
    return module, x


def called(module: Any, x: Any) -> Any:
    """The outputs, with inputs given as `torch.func.functional_call` gives them."""
    if isinstance(x, tuple):
        return module(*x)
    return module(**x) if isinstance(module, Keywords) else module(x)


def draw(*shape: int) -> Any:
    return torch.randn(shape, dtype=torch.float64)


def brute_force(outputs: Any, parameters: Any, x: Any, other: Any = None) -> Any:
    """Θ (n, c, n', c) of a function of the inputs, by the automatic derivative of each output of each example."""

    def jacobian(inputs: Any) -> Any:
        found = outputs(inputs)
        found = found.reshape(len(found), -1)
        rows = []
        for output in found.flatten():
            parts = torch.autograd.grad(output, parameters, retain_graph=True, materialize_grads=True)
            rows.append(torch.cat([each.flatten() for each in parts]))
        return torch.stack(rows).reshape(*found.shape, -1)

    one = jacobian(x)
    return torch.einsum("iap,jbp->iajb", one, one if other is None else jacobian(other))


class Tied(nn.Module):
    """Tokens in, logits of tokens out by the same table; one layer is used twice."""

    def __init__(self):
        super().__init__()
        self.table, self.hidden = nn.Embedding(7, 4), nn.Linear(4, 4)
        self.last = nn.Linear(4, 7, bias=False)
        self.last.weight = self.table.weight

    def forward(self, tokens):
        return self.last(torch.tanh(self.hidden(torch.tanh(self.hidden(self.table(tokens).mean(1))))))


class Twice(nn.Module):
    """Two layers of one weight, and a third of its transpose would be another kind of use."""

    def __init__(self):
        super().__init__()
        self.one, self.two, self.last = nn.Linear(4, 4), nn.Linear(4, 4, bias=False), nn.Linear(4, 2)
        self.two.weight = self.one.weight

    def forward(self, x):
        return self.last(torch.tanh(self.two(torch.tanh(self.one(x)))))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down, self.last = nn.LayerNorm(4), nn.Linear(4, 6), nn.Linear(6, 4), nn.Linear(4, 2)

    def forward(self, x):
        x = x + self.down(functional.gelu(self.up(self.norm(x))))
        x = x + self.down(functional.relu(self.up(x), inplace=True))
        return self.last(x)


class UserModule(nn.Module):
    """Weights in products, scaled, transposed, cast and with a learned factor, and functional calls."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Parameter(torch.randn(3, 4)), nn.Parameter(torch.randn(4, 2))
        self.left, self.factor = nn.Parameter(torch.randn(4, 3)), nn.Parameter(torch.randn(()))
        self.masked = nn.Parameter(torch.randn(4, 4))

    def forward(self, x):
        h = torch.tanh(x @ self.first / 2) + (-self.left.to(x.dtype) @ x.T).T
        h = torch.matmul(torch.sin(h), self.masked.tril())
        return functional.linear(h, (self.factor * self.second).mT) + torch.mm(h, 0.3 * self.second)


class Dictionary(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.last = nn.Linear(3, 4), nn.Linear(2, 4), nn.Linear(4, 2)

    def forward(self, batch):
        return self.last(torch.tanh(self.one(batch["x"]) + self.two(batch["y"])))


class Keywords(Dictionary):
    def forward(self, x, y):
        return super().forward({"x": x, "y": y})


class Attention(nn.Module):
    """Words (n, length, width); matrices act on all positions of a word."""

    def __init__(self):
        super().__init__()
        self.query, self.value, self.last = nn.Linear(3, 3, bias=False), nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x):
        scores = torch.softmax(self.query(x) @ x.mT, dim=-1)
        return self.last((scores @ self.value(x)).sum(1))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.memory, self.last = nn.LSTM(3, 3, batch_first=True), nn.Linear(3, 2)

    def forward(self, x):
        return self.last(self.memory(x)[0][:, -1])


class Branching(nn.Module):
    """It looks at values, and writes into a tensor."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x):
        z = self.first(x)
        h = torch.zeros_like(z)
        for row in range(len(z)):
            h[row] = z[row] if z[row].sum().item() > 0 else torch.tanh(z[row])
        return self.last(h)


class Doubled(torch.autograd.Function):
    """A product whose gradient is twice what it would be."""

    @staticmethod
    def forward(context, x, weight):
        context.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(context, signal):
        x, weight = context.saved_tensors
        return signal @ weight.T, 2 * x.T @ signal


class Custom(nn.Module):
    """One weight has a gradient of its own, in one of its two uses."""

    def __init__(self):
        super().__init__()
        self.weight, self.last = nn.Parameter(torch.randn(3, 3)), nn.Linear(3, 2)

    def forward(self, x):
        return self.last(torch.tanh(Doubled.apply(torch.sin(x @ self.weight), self.weight)))


def convolutional() -> tuple[Any, Any]:
    module = nn.Sequential(
        nn.Conv2d(4, 6, 3, stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2),
        nn.BatchNorm2d(6),
        nn.ReLU(inplace=True),
        nn.Conv2d(6, 4, (1, 3), padding="same", padding_mode="circular", bias=False),
        nn.Tanh(),
        nn.Conv2d(4, 4, 3, padding="same", groups=4),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(24, 2),
    )
    return module, draw(5, 4, 7, 6)


NETWORKS = {
    "an MLP": Network(
        lambda: (nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)), draw(5, 3)),
        {"0.weight", "2.weight", "4.weight"},
    ),
    "without biases": Network(
        lambda: (nn.Sequential(nn.Linear(3, 5, bias=False), nn.ReLU(), nn.Linear(5, 2, bias=False)), draw(5, 3)),
        {"0.weight", "2.weight"},
    ),
    "one output in no axis": Network(
        lambda: (nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1), nn.Flatten(0)), draw(5, 3)),
        {"0.weight", "2.weight"},
    ),
    "convolutions with groups, strides and dilations": Network(
        convolutional, {"0.weight", "3.weight", "5.weight", "8.weight"}
    ),
    "convolutions on a line": Network(
        lambda: (
            nn.Sequential(nn.Conv1d(2, 3, 3, dilation=2), nn.Tanh(), nn.Flatten(), nn.Linear(9, 2)),
            draw(5, 2, 7),
        ),
        {"0.weight", "3.weight"},
    ),
    "convolutions in space": Network(
        lambda: (
            nn.Sequential(nn.Conv3d(1, 2, 2), nn.Tanh(), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(2, 2)),
            draw(5, 1, 3, 3, 4),
        ),
        {"0.weight", "4.weight"},
    ),
    "transposed convolutions": Network(
        lambda: (nn.Sequential(nn.ConvTranspose1d(2, 3, 3), nn.Flatten(), nn.Linear(15, 2)), draw(5, 2, 3)),
        {"2.weight"},
    ),
    "a table": Network(
        lambda: (
            nn.Sequential(nn.Embedding(7, 3, padding_idx=2), nn.Flatten(), nn.Linear(9, 2)),
            torch.arange(15).reshape(5, 3) % 7,
        ),
        {"0.weight", "2.weight"},
    ),
    "a tied table": Network(lambda: (Tied(), torch.arange(15).reshape(5, 3) % 7), {"hidden.weight"}),
    "two layers of one weight": Network(lambda: (Twice(), draw(5, 4)), {"one.weight", "last.weight"}),
    "a residual network with normalised layers": Network(
        lambda: (Residual(), draw(5, 4)), {"up.weight", "down.weight", "last.weight"}
    ),
    "code of its own": Network(lambda: (UserModule(), draw(5, 3)), {"first", "second", "left"}),
    "a dictionary": Network(
        lambda: (Dictionary(), {"x": draw(5, 3), "y": draw(5, 2)}), {"one.weight", "two.weight", "last.weight"}
    ),
    "keywords": Network(
        lambda: (Keywords(), {"x": draw(5, 3), "y": draw(5, 2)}), {"one.weight", "two.weight", "last.weight"}
    ),
    "two arguments": Network(
        lambda: (Keywords(), (draw(5, 3), draw(5, 2))), {"one.weight", "two.weight", "last.weight"}
    ),
    "attention": Network(lambda: (Attention(), draw(5, 2, 3)), {"query.weight", "value.weight", "last.weight"}),
    "a transformer": Network(
        lambda: (
            nn.Sequential(nn.TransformerEncoderLayer(4, 2, 6, batch_first=True), nn.Flatten(), nn.Linear(8, 2)),
            draw(5, 2, 4),
        ),
        {"0.linear1.weight", "0.linear2.weight", "2.weight"},
    ),
    "weights of a norm": Network(
        lambda: (nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 4)), nn.Linear(4, 2)), draw(5, 3)),
        {"1.weight"},
    ),
    "memory": Network(lambda: (Recurrent(), draw(5, 3, 3)), {"last.weight"}, mapped=False),
    "branches": Network(lambda: (Branching(), draw(5, 3)), {"first.weight", "last.weight"}, mapped=False),
    "a gradient of its own": Network(lambda: (Custom(), draw(5, 3)), {"last.weight"}, mapped=False),
}

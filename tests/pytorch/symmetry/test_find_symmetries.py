"""Symmetries of modules of PyTorch against those of twins in JAX, those that theory counts, and PyTorch's gradients."""

from __future__ import annotations

import numpy as np
import pytest
from symmetry.zoo import LARGER, NETWORKS, structure_of

from dynascope.errors import InputError
from dynascope.symmetry import charges, find_symmetries

torch = pytest.importorskip("torch", reason="PyTorch is an optional extra")
pytest.importorskip("dynascope.torch")
nn, functional = torch.nn, torch.nn.functional


def tied(p, x):
    stream = functional.embedding(x, p["embedding"])
    return (stream + torch.relu(stream @ p["in"]) @ p["out"]) @ p["embedding"].T


def convolutional(p, x):
    # As JAX pads to the same length: at the end.
    x = functional.pad(x.permute(0, 3, 1, 2), (0, 1, 0, 1))
    x = functional.relu_(functional.conv2d(x, p["first"].permute(3, 2, 0, 1), p["bias"], stride=2))
    x = functional.relu(functional.conv2d(x, p["second"].permute(3, 2, 0, 1), padding=1, groups=2))
    x = functional.max_pool2d(x, 2)
    return x.permute(0, 2, 3, 1).flatten(1) @ p["head"]


def rotary(x):
    one, other = x.chunk(2, -1)
    angle = torch.arange(x.shape[-2])[:, None] * torch.tensor([1.0, 0.3], dtype=torch.float64)
    turned = torch.complex(one, other) * torch.polar(torch.ones_like(angle), angle)
    return torch.cat([turned.real, turned.imag], -1)


def grouped_queries(p, x):
    q = rotary((x @ p["Q"]).view(len(x), 2, 4).transpose(0, 1))
    k, v = rotary((x @ p["K"])[None]), (x @ p["V"])[None]
    found = functional.scaled_dot_product_attention(q, k, v, scale=1.0, enable_gqa=True)
    return found.transpose(0, 1).reshape(len(x), -1) @ p["O"]


def layer_normed(p, x):
    return functional.layer_norm(x @ p["W"] + p["b"], (3,), p["gain"], p["shift"], eps=0.0) @ p["A"]


TWINS = {
    "functional leaky ReLU": lambda p, x: functional.leaky_relu(x @ p["W"], 0.2).abs() @ p["a"],
    "layer norm": layer_normed,
    "group norm": lambda p, x: torch.relu(functional.group_norm(x @ p["W"], 2, p["gain"], eps=0.0)) @ p["A"],
    "tied embedding": tied,
    "convolutions": convolutional,
    "grouped queries with rotary positions": grouped_queries,
}


@pytest.fixture(autouse=True)
def _drawn_alike():
    torch.manual_seed(0)


def drawn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def read(found):
    return {(each.kind, each.size, *each.paths) for each in found.symmetries}


def paths(*names):
    return tuple(f"['{name}']" for name in names)


def conserved(module, inputs):
    """The symmetries, which the gradient of a loss of PyTorch's own does not see."""
    found = find_symmetries(module, None, inputs)
    wide = module.double()
    outputs = wide(inputs.double() if inputs.is_floating_point() else inputs)
    loss = functional.cross_entropy(outputs.flatten(0, -2), torch.arange(outputs[..., 0].numel()) % outputs.shape[-1])
    named = dict(wide.named_parameters())
    slopes = torch.autograd.grad(loss, list(named.values()))
    theta = {name: each.detach().numpy() for name, each in named.items()}
    slope = {name: each.numpy() for name, each in zip(named, slopes, strict=True)}
    size = np.sqrt(sum(float((each**2).sum()) for each in slope.values()))
    for each in found.symmetries:
        # Rounding of sums over all parameters, which are of order one.
        assert np.abs(each.identity(theta, slope)).max() < 1e-13 * size
    values = charges(theta, found.symmetries)
    assert values.shape == (found.size,)
    for params in (wide, named):
        np.testing.assert_array_equal(charges(params, found.symmetries), values)
    halves = {name: each.to(torch.bfloat16) for name, each in named.items()}
    rounded = {name: each.double().numpy(force=True) for name, each in halves.items()}
    np.testing.assert_array_equal(charges(halves, found.symmetries), charges(rounded, found.symmetries))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", TWINS)
def test_a_function_has_the_symmetries_of_its_twin_in_jax(name):
    twin = (NETWORKS | LARGER)[name]
    inputs = torch.from_numpy(twin.inputs)
    found = find_symmetries(TWINS[name], {name: torch.from_numpy(each) for name, each in twin.params.items()}, inputs)
    assert found.table == structure_of(name).table
    assert (found.size, found.broken, found.rounding < 1e-13) == (twin.charges, (), True)


class Residual(nn.Module):
    """A classifier of small images: a block with batch norm, whose stream is added to it."""

    def __init__(self):
        super().__init__()
        self.stem, self.stem_norm = nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.one, self.one_norm = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.two, self.two_norm = nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        stream = functional.relu(self.stem_norm(self.stem(x)), inplace=True)
        inside = self.two_norm(self.two(functional.relu(self.one_norm(self.one(stream)))))
        inside += stream
        return self.head(functional.relu(inside).mean((2, 3)))


@pytest.mark.slow
def test_a_residual_classifier_in_training_has_its_scales_and_what_epsilon_breaks():
    module, images = Residual(), drawn(6, 1, 5, 5)
    before = {name: each.clone() for name, each in module.state_dict().items()}
    found = find_symmetries(module, None, images)
    assert read(found) == {
        ("rescale", 4, *paths("one_norm.weight", "one_norm.bias", "two.weight")),
        (
            "rescale",
            4,
            *paths(
                "stem_norm.weight", "stem_norm.bias", "one.weight", "two_norm.weight", "two_norm.bias", "head.weight"
            ),
        ),
        ("translation", 4, *paths("one.bias")),
    }
    assert [(each.charge.kind, each.charge.size, each.reason) for each in found.broken] == [
        ("scale", 4, "ε of a norm")
    ] * 3
    # Neither statistics nor gradients of the module are touched.
    assert module.training
    assert all(torch.equal(each, before[name]) for name, each in module.state_dict().items())
    assert all(each.grad is None for each in module.parameters())


@pytest.mark.slow
def test_batch_norm_in_evaluation_has_its_statistics_as_constants():
    module = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))
    module(drawn(20, 3) + 1)
    found = conserved(module.eval(), drawn(5, 3))
    # The running mean is no longer zero, and so the first layer is not rescaled without its bias.
    assert read(found) == {("rescale", 4, *paths("1.weight", "1.bias", "3.weight"))}


@pytest.mark.slow
def test_multi_head_attention_mixes_within_heads_and_shifts_the_bias_of_its_keys():
    layer = nn.TransformerEncoderLayer(4, 2, 3, batch_first=True, norm_first=True)
    # Two heads of two: queries with keys, values with outputs; key biases; norms; hidden units.
    found = conserved(nn.Sequential(layer, nn.Linear(4, 3)).eval(), drawn(3, 5, 4))
    fused = "0.self_attn.in_proj_weight", "0.self_attn.in_proj_bias"
    assert read(found) == {
        ("matrix", 6, *paths(*fused)),
        ("matrix", 6, *paths(*fused, "0.self_attn.out_proj.weight")),
        ("translation", 4, *paths(fused[1])),
        ("rescale", 4, *paths("0.norm1.weight", "0.norm1.bias", fused[0])),
        ("rescale", 4, *paths("0.norm2.weight", "0.norm2.bias", "0.linear1.weight")),
        ("rescale", 3, *paths("0.linear1.weight", "0.linear1.bias", "0.linear2.weight")),
    }


class Language(nn.Module):
    """A small model of a residual stream whose last layer is its table, or begins as it."""

    def __init__(self, copied):
        super().__init__()
        self.table, self.up, self.down = nn.Embedding(5, 4), nn.Linear(4, 6), nn.Linear(6, 4, bias=False)
        self.head = nn.Linear(4, 5, bias=False)
        self.head.weight = nn.Parameter(self.table.weight.detach().clone()) if copied else self.table.weight

    def forward(self, tokens):
        stream = self.table(tokens)
        return self.head(stream + self.down(functional.relu(self.up(stream))))


@pytest.mark.slow
def test_a_tied_weight_is_one_parameter_and_a_copy_has_symmetries_of_its_own():
    tokens = torch.tensor([[0, 1, 2], [4, 1, 3]])
    hidden = ("rescale", 6, *paths("up.weight", "up.bias", "down.weight"))
    assert read(conserved(Language(copied=False), tokens)) == {hidden}
    stream = ("matrix", 10, *paths("table.weight", "up.weight", "down.weight", "head.weight"))
    assert read(conserved(Language(copied=True), tokens)) == {hidden, stream}
    shared = Language(copied=True)
    shared.head.weight.data = shared.table.weight.data
    assert read(find_symmetries(shared, None, tokens)) == {hidden}


class TwoNames(nn.Module):
    """A layer, and a norm with its buffers, under two names each."""

    def __init__(self):
        super().__init__()
        self.a, self.norm = nn.Linear(3, 3), nn.BatchNorm1d(3)
        self.b, self.c, self.same_norm = nn.Linear(3, 2), self.a, self.norm

    def forward(self, x):
        return self.b(functional.relu(self.same_norm(self.c(torch.tanh(self.norm(self.a(x)))))))


@pytest.mark.slow
@pytest.mark.parametrize("applied", [False, True])
def test_a_layer_of_two_names_is_one_and_stays_in_the_module(applied):
    module, inputs = TwoNames(), drawn(5, 3)
    held = [*module.parameters(), *module.buffers()]
    before = [each.detach().clone() for each in held]
    found = (
        find_symmetries(lambda network, x: network(x), module, inputs)
        if applied
        else find_symmetries(module, None, inputs)
    )
    # Both uses of the layer enter the norm of the batch.
    assert read(found) == {("translation", 3, *paths("a.bias"))}
    # PyTorch leaves the tensors of a call behind where a layer is given under both of its names.
    assert [id(each) for each in (*module.parameters(), *module.buffers())] == [id(each) for each in held]
    assert all(torch.equal(one, other) for one, other in zip(held, before, strict=True))


class Stranger(nn.Module):
    """Parameters and functional calls alone, with a squared gate, an Einstein sum and arguments by keyword."""

    def __init__(self):
        super().__init__()
        self.gate, self.value = nn.Parameter(drawn(3, 4)), nn.Parameter(2 * drawn(3, 4))
        self.last, self.frozen = nn.Parameter(drawn(4, 2)), nn.Parameter(drawn(2, 2), requires_grad=False)
        self.idle = nn.Parameter(torch.zeros(2))

    def forward(self, left, right=None, *, scale):
        hidden = torch.einsum("ni,ij->nj", left, self.gate) ** 2 * (right @ self.value)
        return {"outputs": functional.linear(hidden, self.last.T) @ self.frozen * scale, "kept": None}


@pytest.mark.slow
def test_the_module_of_a_stranger_is_read_by_what_it_computes():
    inputs = {"left": drawn(5, 3), "right": drawn(5, 3), "scale": torch.tensor(2.0)}
    found = find_symmetries(Stranger(), None, inputs)
    assert read(found) == {("rescale", 4, *paths("gate", "last")), ("rescale", 4, *paths("value", "last"))}
    # Of a gate of the second power.
    assert sorted(part.factor for each in found.symmetries for part in each.parts) == [-1.0, -0.5, 1.0, 1.0]
    assert found.unused == paths("idle")


def test_log_probabilities_of_a_module_are_a_function_of_it():
    module = nn.Sequential(nn.Linear(2, 3))
    found = find_symmetries(lambda network, x: network(x).log_softmax(-1), module, drawn(4, 2))
    assert read(found) == {("translation", 1, *paths("0.bias")), ("translation", 2, *paths("0.weight"))}


@pytest.mark.slow
def test_rows_that_are_summed_in_bags_mix_and_their_largest_do_not():
    class Bags(nn.Module):
        def __init__(self, mode):
            super().__init__()
            self.bags, self.head = nn.EmbeddingBag(5, 2, mode=mode), nn.Linear(2, 3)

        def forward(self, x):
            return self.head(self.bags(x))

    rows = torch.tensor([[0, 1, 4], [2, 3, 3]])
    kinds = {
        mode: [each.kind for each in find_symmetries(Bags(mode), None, rows).symmetries] for mode in ("mean", "max")
    }
    assert kinds == {"mean": ["matrix"], "max": ["rescale"]}


def test_a_row_of_padding_which_is_not_trained_breaks_the_symmetry_of_a_table():
    module = nn.Sequential(nn.Embedding(4, 2, padding_idx=0), nn.Linear(2, 3, bias=False))
    found = find_symmetries(module, None, torch.tensor([[0, 1], [2, 3]]))
    assert found.symmetries == ()
    assert ["gradients" in each.reason for each in found.broken] == [True]


def test_a_seed_that_is_none_is_refused():
    with pytest.raises(InputError, match="seed"):
        find_symmetries(nn.Linear(2, 3), None, torch.ones(4, 2), seed=-1)


class CentredMaximum(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = nn.Linear(3, 6, dtype=torch.float64), nn.Linear(2, 2, bias=False, dtype=torch.float64)

    def forward(self, x):
        hidden = self.hidden(x)
        centred = hidden - hidden.mean(-1, keepdim=True)
        return self.out(centred.reshape(len(x), 2, 3).amax(-1))


def test_a_maximum_over_centred_units_keeps_its_shifts():
    torch.manual_seed(0)
    found = find_symmetries(CentredMaximum(), None, torch.randn(5, 3, dtype=torch.float64))
    # A shift of all units for each of three inputs and for the bias; one scale of the hidden against the last layer.
    assert found.size == 4 + 1


class BiasedHead(nn.Module):
    """A causal head with a constant bias of its queries, in a buffer, and optionally a learned one."""

    def __init__(self, *, learned):
        super().__init__()
        self.query, self.key = nn.Linear(3, 2, bias=learned), nn.Linear(3, 2, bias=False)
        self.value, self.out = nn.Linear(3, 2, bias=False), nn.Linear(2, 3, bias=False)
        self.register_buffer("constant", torch.tensor([0.6, -0.3]))

    def forward(self, x):
        attended = functional.scaled_dot_product_attention(
            self.query(x) + self.constant, self.key(x), self.value(x), is_causal=True
        )
        return self.out(attended)


@pytest.mark.parametrize(("learned", "scores"), [(False, 1), (True, 3)])
def test_a_bias_in_a_buffer_restricts_or_displaces_the_symmetry_of_the_scores(learned, scores):
    module = BiasedHead(learned=learned)
    found = find_symmetries(module, None, drawn(5, 4, 3))
    assert found.size == scores + 3
    if learned:
        (affine,) = found.affine
        np.testing.assert_allclose(affine.constants["['query.bias']"], [0.6, -0.3], rtol=0, atol=1e-6)
    else:
        (charge,) = (each for each in found.symmetries if "['query.weight']" in each.paths)
        query, key = (each.weight.detach().double().numpy() for each in (module.query, module.key))
        across = np.array([1.0, 2.0]) / 5**0.5
        expected = np.abs(across @ (query @ query.T - key @ key.T) @ across)
        np.testing.assert_allclose(np.abs(charges(module, [charge])), [expected], rtol=1e-5)

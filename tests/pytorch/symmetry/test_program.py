"""Operations, in functions of a few of a kind, against PyTorch at other parameters and inputs than were exported."""

from __future__ import annotations

import copy

import jax
import numpy as np
import pytest

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.symmetry import find_symmetries

torch = pytest.importorskip("torch", reason="PyTorch is an optional extra")
program = pytest.importorskip("dynascope.torch").program
nn, functional = torch.nn, torch.nn.functional

ROWS, WEIGHT = (3, 8), (8, 8)
IMAGES, GAIN = (2, 4, 7, 6), (4, 1, 1)


def activations(p, x):
    names = "relu relu6 celu selu elu hardtanh hardswish hardsigmoid silu mish softplus softsign tanhshrink softshrink"
    z = x @ p
    found = [getattr(functional, name)(z) for name in [*names.split(), "gelu", "logsigmoid", "leaky_relu", "tanh"]]
    return [
        *found,
        functional.gelu(z, approximate="tanh"),
        functional.glu(z),
        functional.prelu(z, p[0]),
        z.abs() ** 1.5,
    ]


def elementwise(p, x):
    z = torch.sigmoid(x @ p)
    names = (
        "abs acos asin atan atanh asinh ceil cos cosh erf erfc erfinv exp expm1 exp2 floor lgamma log log10 log1p log2"
    )
    names += " neg reciprocal rsqrt sign sin sinh sqrt square tan tanh trunc digamma frac logit"
    both = [
        torch.maximum,
        torch.minimum,
        torch.fmax,
        torch.atan2,
        torch.hypot,
        torch.xlogy,
        torch.remainder,
        torch.fmod,
    ]
    found = [getattr(torch, name)(z) for name in names.split()] + [each(z, x.abs() + 1) for each in both]
    floored = torch.div(x @ p, 0.3, rounding_mode="floor") + torch.div(x @ p, 0.3, rounding_mode="trunc")
    return [
        *found,
        floored,
        torch.acosh(1 + z),
        torch.lerp(z, x, 0.3),
        torch.addcmul(x, z, x, value=2),
        z.clamp(0.3, 0.6),
    ]


def sums(p, x):
    z = x @ p
    found = [
        z.amax((0, 1)),
        z.amin(1),
        *z.max(1),
        *z.min(0),
        z.max(),
        z.min(),
        z.prod(1),
        z.mean(),
        z.sum(0, keepdim=True),
    ]
    found += [torch.std(z, -1), *torch.var_mean(z, 0, correction=0), torch.logsumexp(z, -1), z.cumsum(0), z.cumprod(1)]
    found += [torch.linalg.vector_norm(z, order, dim=-1) for order in (1, 2, 3, float("inf"), -float("inf"))]
    found += [torch.norm(z), functional.normalize(z), functional.cosine_similarity(z, x), torch.cdist(z, x)]
    found += [torch.einsum("ni,ij,nj->n", x, p, z), torch.outer(z[0], x[0]), torch.kron(z, x), functional.softmax(z, 0)]
    found += [functional.bilinear(x, z, p.reshape(1, 8, 8)), functional.log_softmax(z, -1), z[z.argmax(0)], x @ p[0]]
    return [torch.baddbmm(z[:, None], x[:, None], p.expand(3, 8, 8), beta=0.5, alpha=2), *found]


def arrangements(p, x):
    z = x @ p
    found = [torch.cat(z.chunk(3, 1)[::-1], 1), sum(z.unbind(0)), torch.roll(z, 2, 1), z.repeat(2, 1, 3), z.flip(1)]
    found += [z.repeat_interleave(3, 1), x @ p.tril(), x @ torch.diag(torch.diagonal(p)), z.unfold(1, 3, 2)]
    found += [
        functional.pad(z, (1, -2, 0, 1), value=0.5),
        torch.stack([z, x]),
        z.mT[1:7:2, None].squeeze(1),
        z[..., -1],
    ]
    found += [functional.pad(z, (2, 1), mode=mode) for mode in ("reflect", "replicate", "circular")]
    return [*found, z.as_strided((2, 3), (8, 2), 1), functional.one_hot(torch.tensor([1, 5]), 8).double() @ p]


def picked(p, x):
    z, rows = x @ p, torch.tensor([2, 0, 1])
    written = z.clone()
    written[:, 1] = 0.0
    written[0, 2:4] = written[1, 2:4]
    written[:, ::2] *= 2
    masked = z.clone()
    masked[rows[:2]] = 1.0
    masked[masked > 0.5] = 0.1
    found = [written, masked, z[rows], z[[0, 2], [1, -1]], z[:, torch.arange(8) > 3], z.index_select(1, rows)]
    found += [z.gather(0, rows[:, None].expand(3, 4)), torch.zeros_like(z).scatter(0, rows[:, None].expand(3, 8), z)]
    found += [
        torch.zeros_like(z).scatter_add(0, rows[:, None].expand(3, 8), z),
        torch.zeros_like(z).index_add(0, rows, z),
    ]
    found += [
        z.masked_fill(x > 0, -1.0),
        z.sort(1, descending=True)[0],
        z.topk(3, 0, largest=False)[0],
        z[x[:, 0].argsort()],
    ]
    bags, starts = torch.tensor([2, 0, 1, 1, 3]), torch.tensor([0, 2, 2])
    for mode in ("sum", "mean", "max"):
        found.append(functional.embedding_bag(bags, p, starts, mode=mode, padding_idx=1))
    found.append(functional.embedding_bag(bags, p, starts, mode="sum", per_sample_weights=x.flatten()[:5]))
    return [*found, functional.embedding(rows, p, padding_idx=0), torch.where(x > 0, z, 0.0).argmin(1) * z[:, 0]]


def convolutions(p, x):
    images, line = x * p[:4].reshape(4, 1, 1), x.flatten(2)
    kernel, deep = p[:54].reshape(3, 2, 3, 3), p[:72].reshape(4, 2, 3, 3)
    found = [functional.conv2d(images, kernel.repeat(2, 1, 1, 1), p[:6], (2, 1), (1, 2), (1, 2), groups=2)]
    found += [
        functional.conv1d(line, p[:24].reshape(2, 4, 3), padding="same"),
        functional.conv2d(x[0], deep.repeat(1, 2, 1, 1)),
    ]
    found += [functional.conv_transpose2d(images, deep, p[:4], 2, 1, 1, groups=2)]
    found += [functional.conv_transpose1d(line, p[:24].reshape(4, 2, 3), stride=3, dilation=2)]
    return [*found, functional.conv3d(x[:, None], p[:8].reshape(1, 1, 2, 2, 2)), functional.unfold(images, 2)]


def pooled(p, x):
    z, line = x * p, (x * p).flatten(2)
    found = [functional.max_pool2d(z, 3, 2, 1, ceil_mode=ceil) for ceil in (False, True)]
    found += [functional.max_pool2d(z, 2, 1, dilation=2), functional.max_pool1d(line, 3, 4, ceil_mode=True)]
    found += [functional.avg_pool2d(z, 3, 2, 1, ceil, count) for ceil in (False, True) for count in (False, True)]
    found += [functional.avg_pool2d(z, 2, 3, 1, True), functional.avg_pool2d(z, 2, divisor_override=3)]
    found += [functional.avg_pool1d(line, 3, 2, 1), functional.max_pool3d(z, 2), functional.avg_pool3d(z, 2)]
    found += [functional.adaptive_avg_pool2d(z, (3, 4)), functional.adaptive_max_pool2d(z, (3, 4))]
    return [*found, functional.adaptive_avg_pool1d(line, 5), functional.fold(functional.unfold(z, 2), (7, 6), 2)]


def enlarged_and_normed(p, x):
    z = x * p
    found = [functional.interpolate(z, scale_factor=2), functional.interpolate(z, size=(9, 5), mode="bicubic")]
    found += [functional.interpolate(z, size=(9, 4), mode="bilinear", align_corners=each) for each in (False, True)]
    found += [functional.interpolate(z, scale_factor=1.5, mode="bilinear"), functional.interpolate(z[0], size=5)]
    found += [functional.group_norm(z, 2, p[:, 0, 0]), functional.layer_norm(z, (7, 6)), functional.rms_norm(z, (6,))]
    found += [
        functional.instance_norm(z),
        functional.local_response_norm(z, 2),
        functional.batch_norm(z, None, None, training=True),
    ]
    return [*found, functional.pixel_shuffle(z, 2)]


def attentions(p, x):
    heads, turned = (x @ p).reshape(1, 3, 4, 2).transpose(1, 2), torch.polar(torch.ones(4), torch.arange(4.0))
    few = heads[:, :2]
    found = [functional.scaled_dot_product_attention(heads, few, few, is_causal=True, enable_gqa=True)]
    found += [functional.scaled_dot_product_attention(heads, heads, heads, attn_mask=torch.tril(torch.ones(3, 3)) > 0)]
    complex_rows = torch.view_as_complex((x @ p).reshape(3, 4, 2)) * turned.to(torch.complex128)
    return [*found, torch.view_as_real(complex_rows)]


GROUPS = {
    "activations": (activations, ROWS, WEIGHT),
    "elementwise": (elementwise, ROWS, WEIGHT),
    "sums": (sums, ROWS, WEIGHT),
    "arrangements": (arrangements, ROWS, WEIGHT),
    "picked": (picked, ROWS, WEIGHT),
    "convolutions": (convolutions, IMAGES, (72,)),
    "pooled": (pooled, IMAGES, GAIN),
    "enlarged and normed": (enlarged_and_normed, IMAGES, GAIN),
    "attentions": (attentions, ROWS, WEIGHT),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", GROUPS)
def test_operations_are_those_of_pytorch_elsewhere_too(name):
    function, inputs, params = GROUPS[name]
    generator = torch.Generator().manual_seed(3)
    x, p, x_there, p_there = (
        torch.randn(shape, dtype=torch.float64, generator=generator) for shape in (inputs, params) * 2
    )
    found = program(function, p, x)
    with jax.enable_x64(True):
        ours = jit(found.apply)(p_there.numpy(), x_there.numpy())
    theirs = [each for each in function(p_there, x_there) if each.is_floating_point()]
    for one, other in zip(ours, theirs, strict=True):
        # Rounding of chains of some ten operations on numbers of order one, which stays below 1e-13.
        np.testing.assert_allclose(one, other.numpy(), rtol=1e-12, atol=1e-12)


class Lookup(nn.Module):
    """An operation that is not known, in a line of its own."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.eye(3))

    def forward(self, x):
        return x @ torch.linalg.inv(self.weight)


class Narrow(nn.Module):
    """A tensor of 32 bits that is no buffer, and a tied pair that is frozen."""

    def __init__(self):
        super().__init__()
        self.first, self.between, self.last = nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 4)
        self.between.weight = self.last.weight.requires_grad_(False)
        self.turned = 2 * torch.eye(4)

    def forward(self, x):
        return self.last(torch.relu(self.between(torch.relu(self.first(x)) @ self.turned)))


@pytest.mark.slow
def test_a_module_that_holds_narrow_tensors_is_read_in_their_precision_and_computed_in_64_bits():
    found = program(torch.compile(nn.DataParallel(Narrow())), None, torch.ones(2, 3))
    assert list(found.params) == ["between.bias", "first.bias", "first.weight", "last.bias"]
    with jax.enable_x64(True):
        assert found.apply(found.params, found.inputs).dtype == np.float64


def test_outputs_that_cancel_at_the_start_are_accepted():
    class Centred(nn.Module):
        def __init__(self):
            super().__init__()
            self.network = nn.Sequential(nn.Linear(3, 20), nn.ReLU(), nn.Linear(20, 2))
            self.first = copy.deepcopy(self.network).requires_grad_(False)

        def forward(self, x):
            return 10 * (self.network(x) - self.first(x))

    torch.manual_seed(0)
    found = find_symmetries(Centred(), None, torch.randn(16, 3))
    assert [each.kind for each in found.symmetries] == ["rescale"]


def test_an_operation_that_is_not_known_is_named_with_its_line():
    with pytest.raises(
        InputError, match=r"linalg_inv_ex.*, which is not supported, in .*test_program.py, line \d+: return x @ torch"
    ):
        program(Lookup(), None, torch.ones(2, 3))


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda p, x: functional.dropout(x @ p), "draws random numbers"),
        (lambda p, x: x @ p * torch.rand(()), "draws random numbers"),
        (lambda p, x: x @ p if x.sum().item() > 0 else x, "torch.export.export cannot export the model"),
        (lambda p, x: torch.relu(x @ p).detach() @ p, "gradients of the translated program, up to"),
        (lambda p, x: torch.log(x @ p * 0 - 1), "outputs of the model are not finite"),
        (lambda p, x: torch.fft.rfft(x @ p).abs(), "_fft_r2c.default, which is not supported"),
        (lambda p, x: (x @ p).argmax(1), "no floating-point outputs"),
    ],
)
def test_what_is_no_function_of_parameters_and_inputs_is_refused(function, said):
    with pytest.raises(InputError, match=said):
        program(function, torch.eye(3), torch.ones(2, 3))


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((3, None, torch.ones(2, 3)), "apply is 3"),
        ((nn.Linear(3, 2), None, ()), "example_inputs is empty"),
        ((nn.Linear(3, 2), None, "text"), "example_inputs contains text"),
        ((nn.Linear(3, 2), None, torch.full((2, 3), torch.nan)), "not finite"),
        ((nn.Linear(3, 2), None, torch.ones(2, 4)), "the model raised RuntimeError on example_inputs"),
        ((nn.Linear(3, 2), None, torch.ones(2, 3, dtype=torch.complex64)), "complex"),
        ((nn.Linear(3, 2), {"weight": torch.ones(2, 3)}, torch.ones(2, 3)), "params is given for a module"),
        ((nn.ReLU(), None, torch.ones(2, 3)), "no trainable parameters"),
        ((nn.LazyLinear(2), None, torch.ones(2, 3)), "uninitialised parameters"),
        ((lambda p, x: x, {"w": 1}, torch.ones(2, 3)), "the parameter number 0 is 1"),
        ((lambda p, x: x, torch.ones(3, dtype=torch.int64), torch.ones(2, 3)), "not real and finite"),
    ],
)
def test_arguments_that_are_none_are_refused(arguments, said):
    with pytest.raises(InputError, match=said):
        program(*arguments)

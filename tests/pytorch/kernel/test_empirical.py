from __future__ import annotations

import jax
import numpy as np
import pytest

import dynascope.probes.kernel as probes
from dynascope.errors import InputError
from dynascope.probes.kernel import neural_tangent_kernel
from dynascope.probes.kernel.cost import EXACT

networks = pytest.importorskip("pytorch_networks", reason="PyTorch is an optional extra")
torch, nn = networks.torch, networks.nn
pytest.importorskip("dynascope.torch")

NAMES = list(networks.NETWORKS)
MAPPED = [name for name, each in networks.NETWORKS.items() if each.mapped]


def same(found, expected, tolerance=1e-10):
    expected = expected.reshape(found.shape)
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance * float(expected.abs().max()))


def trained(module):
    return [each for each in module.parameters() if each.requires_grad]


def reference(name):
    module, x = networks.made(name)
    return networks.brute_force(lambda inputs: networks.called(module, inputs), trained(module), x)


@pytest.mark.parametrize("name", NAMES)
def test_the_kernel_is_that_of_the_gradients_of_each_output(name):
    module, x = networks.made(name)
    expected = reference(name)
    for options in ({"algorithm": "structured"}, {}, {"batch_size": 2}):
        found = neural_tangent_kernel(module, None, x, **options)
        same(found.values, expected)
    assert found.dimensions == ("sample", "class", "other_sample", "other_class")
    assert not found.values.requires_grad


@pytest.mark.parametrize("algorithm", ["jacobian", "layerwise"])
@pytest.mark.parametrize("name", ["an MLP", "a tied table", "memory", "code of its own"])
def test_jacobians_give_the_same(name, algorithm):
    module, x = networks.made(name)
    same(neural_tangent_kernel(module, None, x, algorithm=algorithm, batch_size=3).values, reference(name))


@pytest.mark.parametrize("name", ["an MLP", "convolutions on a line", "a tied table", "a dictionary"])
def test_products_give_the_same(name):
    module, x = networks.made(name)
    same(neural_tangent_kernel(module, None, x, algorithm="products", batch_size=2).values, reference(name))


@pytest.mark.parametrize("algorithm", ["structured", "layerwise", "products"])
@pytest.mark.parametrize("contraction", ["diagonal", "trace"])
def test_outputs_can_be_contracted_and_blocks_change_rounding_only(algorithm, contraction):
    module, x = networks.made("convolutions with groups, strides and dilations")
    exact = torch.einsum("iaja->ija", reference("convolutions with groups, strides and dilations"))
    expected = exact if contraction == "diagonal" else exact.mean(-1)
    for size in (None, 2):
        found = neural_tangent_kernel(module, None, x, algorithm=algorithm, contraction=contraction, batch_size=size)
        same(found.values, expected)
    assert found.normalisation == ("mean over outputs" if contraction == "trace" else "none")


@pytest.mark.parametrize("algorithm", EXACT)
def test_two_sets_of_inputs_give_the_block_between_them(algorithm):
    module, x = networks.made("an MLP")
    other = networks.draw(3, 3)
    expected = networks.brute_force(module, trained(module), x, other)
    same(neural_tangent_kernel(module, None, x, other, algorithm=algorithm, batch_size=2).values, expected)


@pytest.mark.parametrize("algorithm", EXACT)
def test_rates_weight_the_gradients(algorithm):
    module, x = networks.made("an MLP")
    named = dict(module.named_parameters())
    rates = {name: float(number) for number, name in enumerate(named)}
    # A gradient of a weight times √η is that of a weight that is √η times as large.
    expected = sum(rates[name] * networks.brute_force(module, [each], x) for name, each in named.items())
    same(neural_tangent_kernel(module, None, x, rates=rates, algorithm=algorithm).values, expected)
    entries = rates | {"0.weight": torch.full((5, 3), rates["0.weight"])}
    same(neural_tangent_kernel(module, named, x, rates=entries, algorithm=algorithm).values, expected)


def test_the_pseudo_kernel_and_a_subset_of_logits_are_parts_of_the_kernel():
    module, x = networks.made("an MLP")
    exact = reference("an MLP")
    found = neural_tangent_kernel(module, None, x, algorithm="pseudo")
    same(found.values, exact.sum((1, 3)) / 3)
    assert found.contraction == "pseudo"
    found = neural_tangent_kernel(module, None, x, algorithm="logits", draws=2, seed=5)
    same(found.values, exact[:, found.outputs][:, :, :, found.outputs])


def test_the_sketch_has_the_variance_that_is_stated_and_equal_directions_for_equal_seeds():
    module, x = networks.made("an MLP")
    exact, draws = reference("an MLP"), 100
    options = {"algorithm": "sketch", "draws": draws, "seed": 1}
    found = neural_tangent_kernel(module, None, x, **options).values
    diagonal = torch.einsum("iaia->ia", exact)
    variance = (torch.einsum("ia,jb->iajb", diagonal, diagonal) + exact**2) / draws
    # In standard deviations; the largest of 225 dependent entries of a Gaussian stays below five.
    assert float(((found - exact) / variance.sqrt()).abs().max()) < 5
    same(neural_tangent_kernel(module, None, x, rates=4.0, batch_size=2, **options).values, 4 * found)


def test_a_sketch_of_few_draws_is_right_in_the_mean():
    module, x = networks.made("an MLP")
    exact, seeds = reference("an MLP"), range(200)
    sketches = [neural_tangent_kernel(module, None, x, algorithm="sketch", draws=2, seed=seed).values for seed in seeds]
    # The trace of 200 sketches has a standard deviation of some percent of the mean.
    trace = torch.stack([torch.einsum("iaia->", sketch) for sketch in sketches])
    deviation = trace.std() / len(seeds) ** 0.5
    assert deviation < 0.05 * trace.mean()
    assert abs(trace.mean() - torch.einsum("iaia->", exact)) < 4 * deviation


def test_a_function_of_tensors_has_the_kernel_of_its_leaves():
    first, second = networks.draw(3, 4).requires_grad_(), networks.draw(4, 2).requires_grad_()
    params = {"layers": [first, (second, torch.arange(3))], "name": "own"}

    def apply(params, x):
        one, (two, _) = params["layers"]
        return torch.tanh(x["x"] @ one) @ two

    x = networks.draw(5, 3)
    expected = networks.brute_force(lambda x: apply(params, {"x": x}), [first, second], x)
    same(neural_tangent_kernel(apply, params, {"x": x}).values, expected)


def test_of_a_tensor_in_two_places_there_is_one_parameter():
    weight = networks.draw(3, 3).requires_grad_()
    params = {"one": weight, "two": weight}

    def apply(params, x):
        return torch.tanh(x @ params["one"]) @ params["two"]

    x = networks.draw(4, 3)
    expected = networks.brute_force(lambda x: apply(params, x), [weight], x)
    same(neural_tangent_kernel(apply, params, x, rates=2.0).values, 2 * expected)


def test_a_function_of_a_module_has_the_kernel_of_the_module():
    module, x = networks.made("an MLP")
    same(neural_tangent_kernel(lambda network, x: network(x), module, x).values, reference("an MLP"))
    module, x = networks.made("memory")
    found = neural_tangent_kernel(lambda network, x: network(x)[0][:, -1], module.memory, x)
    same(found.values, networks.brute_force(lambda x: module.memory(x)[0][:, -1], trained(module.memory), x))


def test_frozen_parameters_take_no_part_unless_they_are_named():
    module, x = networks.made("an MLP")
    module[2].requires_grad_(False)
    rest = [*module[0].parameters(), *module[4].parameters()]
    same(neural_tangent_kernel(module, None, x).values, networks.brute_force(module, rest, x))
    module[2].requires_grad_(True)
    named = {"2.weight": module[2].weight}
    expected = networks.brute_force(module, [module[2].weight], x)
    module[2].requires_grad_(False)
    same(neural_tangent_kernel(module, named, x).values, expected)


def test_parameters_may_have_other_values_than_the_module_and_it_stays_as_it_is():
    module, x = networks.made("convolutions with groups, strides and dilations")
    before = {name: each.clone() for name, each in module.state_dict().items()}
    moved = {name: 1.5 * each.detach() for name, each in module.named_parameters()}
    found = neural_tangent_kernel(module, moved, x).values
    assert all(torch.equal(each, before[name]) for name, each in module.state_dict().items())
    assert all(each.grad is None for each in module.parameters())
    module.load_state_dict(before | moved)
    same(found, networks.brute_force(module, trained(module), x))


@pytest.mark.parametrize("name", ["an MLP", "memory"])
def test_single_precision_stays_single_precision(name):
    module, x = networks.made(name)
    found = neural_tangent_kernel(module.float(), None, x.float()).values
    assert found.dtype == torch.float32
    # Some hundred roundings.
    same(found.double(), reference(name), 1e-5)


def test_nothing_is_made_on_another_device_than_that_of_the_parameters():
    # Tensors that are made without a device would have no numbers here, and cannot be joined to those that have.
    for name in ("convolutions with groups, strides and dilations", "a tied table", "a table", "branches"):
        module, x = networks.made(name)
        expected = reference(name)
        for algorithm in EXACT:
            if algorithm != "products" or networks.NETWORKS[name].mapped:
                with torch.device("meta"):
                    found = neural_tangent_kernel(module, None, x, algorithm=algorithm, batch_size=3).values
                same(found, expected)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_tensors_stay_on_a_gpu():
    # PyTorch differentiates an LSTM on a GPU in training mode only.
    for name in [name for name in NAMES if name != "memory"]:
        module, x = networks.made(name)
        expected = reference(name)
        moved = {key: each.cuda() for key, each in x.items()} if isinstance(x, dict) else None
        moved = tuple(each.cuda() for each in x) if isinstance(x, tuple) else moved or x.cuda()
        found = neural_tangent_kernel(module.cuda(), None, moved).values
        assert found.device.type == "cuda"
        same(found.cpu(), expected)


@pytest.mark.parametrize("switch", ["no_grad", "inference_mode"])
def test_it_differentiates_also_where_gradients_are_off(switch):
    module, x = networks.made("an MLP")
    with getattr(torch, switch)():
        found = neural_tangent_kernel(module, None, x).values
    same(found, reference("an MLP"))


@pytest.mark.slow
def test_a_module_that_was_compiled_or_is_trained_in_parallel_is_read_as_it_was_written():
    module, x = networks.made("an MLP")
    for wrapped in (torch.compile(module), nn.DataParallel(module)):
        same(neural_tangent_kernel(wrapped, None, x).values, reference("an MLP"))


def test_code_that_runs_twice_or_takes_gradients_itself_goes_through_jacobians():
    module, x = networks.made("an MLP")

    def repeated(network, x):
        return torch.utils.checkpoint.checkpoint(network, x, use_reentrant=False)

    def slope(network, x):
        x = x.detach().requires_grad_()
        return torch.autograd.grad(network(x).sum(), x, create_graph=True)[0]

    for apply in (repeated, slope):
        expected = networks.brute_force(lambda x, apply=apply: apply(module, x), trained(module), x)
        same(neural_tangent_kernel(apply, module, x).values, expected)


def test_memory_decides_on_the_blocks_and_too_little_of_it_is_refused():
    module, x = networks.made("an MLP")
    same(neural_tangent_kernel(module, None, x, memory=8e3).values, reference("an MLP"))
    with pytest.raises(InputError, match="bytes"):
        neural_tangent_kernel(module, None, x, memory=100.0)


def test_where_memory_is_short_for_gradients_products_are_taken():
    module, x = nn.Bilinear(1, 60, 40, dtype=torch.float64), networks.draw(2, 60)
    found = [
        neural_tangent_kernel(module, None, (x[:, :1], x), contraction="trace", memory=memory) for memory in (1e8, 1e5)
    ]
    assert [each.algorithm for each in found] == ["structured", "products"]
    same(found[1].values, found[0].values)


@pytest.mark.parametrize("name", ["memory", "a transformer"])
def test_what_needs_the_map_or_forward_derivatives_says_so(name):
    module, x = networks.made(name)
    with pytest.raises(InputError, match="structured"):
        neural_tangent_kernel(module, None, x, algorithm="products")


def test_module_and_function_give_one_kernel_and_measures_of_kernels_take_it():
    module, x = networks.made("an MLP")
    found = neural_tangent_kernel(module, None, x, contraction="trace")
    assert isinstance(found.values, torch.Tensor)
    for apply, params in ((lambda network, x: network(x), module), (module, dict(module.named_parameters()))):
        same(neural_tangent_kernel(apply, params, x, contraction="trace").values, found.values)
    assert probes.estimate_cost(module, None, x)["structured"].exact
    later = neural_tangent_kernel(module, {"4.weight": 2 * module[4].weight}, x, contraction="trace").values
    named = [kernel.numpy() for kernel in (found.values, later)]
    assert float(probes.kernel_distance(found.values, later)) == pytest.approx(float(probes.kernel_distance(*named)))
    aligned = probes.target_alignment(found.values, x)
    assert float(aligned) == pytest.approx(float(probes.target_alignment(named[0], x.numpy())))


def test_it_is_the_kernel_of_the_same_network_in_jax():
    module, x = networks.made("without biases")
    weights = [each.detach().numpy().T for each in module.parameters()]

    def apply(weights, x):
        for layer, w in enumerate(weights):
            x = (jax.nn.relu(x) if layer else x) @ w
        return x

    with jax.enable_x64(True):
        expected = neural_tangent_kernel(apply, weights, x.numpy(), algorithm="jacobian").values
    np.testing.assert_allclose(neural_tangent_kernel(module, None, x).values.numpy(), expected, rtol=1e-10)


@pytest.mark.parametrize(
    "change",
    [
        {"algorithm": "exact"},
        {"contraction": "mean"},
        {"batch_size": 0},
        {"draws": -1},
        {"seed": -1},
        {"memory": 0.0},
        {"algorithm": "logits", "draws": 4},
        {"rates": -1.0},
        {"rates": {"0.weight": 1.0}},
        {"rates": "fast"},
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_options_that_do_not_fit_are_refused(change):
    module, x = networks.made("an MLP")
    with pytest.raises(InputError):
        neural_tangent_kernel(module, None, x, **change)


class TwoNames(nn.Module):
    """A layer and its buffers under two names, a weight in two layers."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.again = self.first
        self.norm = nn.BatchNorm1d(3)
        self.same_norm = self.norm
        self.last = nn.Linear(3, 3)
        self.last.weight = self.first.weight

    def forward(self, x):
        return self.last(self.same_norm(torch.tanh(self.again(self.norm(torch.tanh(self.first(x)))))))


@pytest.mark.parametrize("algorithm", EXACT)
def test_a_layer_of_two_names_is_one_and_stays_in_the_module(algorithm):
    torch.manual_seed(0)
    module, x = TwoNames().double().eval(), torch.randn(4, 3, dtype=torch.float64)
    before = trained(module)
    expected = networks.brute_force(module, before, x)
    same(neural_tangent_kernel(module, None, x, algorithm=algorithm).values, expected)
    # PyTorch leaves the tensors of a call behind where a layer is given under both of its names.
    assert [id(each) for each in module.parameters()] == [id(each) for each in before]

from __future__ import annotations

import pytest

networks = pytest.importorskip("pytorch_networks", reason="PyTorch is an optional extra")
torch = networks.torch
patches = pytest.importorskip("dynascope.torch.kernel.convolution").patches


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize(
    ("window", "stride", "padding", "dilation"),
    [
        ((3, 2), 1, 0, 1),
        ((3, 2), (2, 1), (1, 2), (1, 3)),
        ((2, 4), 1, "same", (3, 1)),
        ((2, 4), (3,), "valid", 1),
        ((1, 1), 2, (0,), 1),
    ],
)
def test_a_convolution_is_the_product_of_patches_and_its_kernel(window, stride, padding, dilation):
    torch.manual_seed(0)
    x, weight = networks.draw(2, 3, 9, 10), networks.draw(5, 3, *window)
    expected = torch.nn.functional.conv2d(x, weight, None, stride, padding, dilation)
    found = patches(x, window, stride, padding, dilation) @ weight.flatten(1).T
    torch.testing.assert_close(found.movedim(-1, 1), expected)


def test_patches_of_lines_and_of_space_are_in_the_same_order():
    torch.manual_seed(0)
    for axes, convolve in ((1, torch.nn.functional.conv1d), (3, torch.nn.functional.conv3d)):
        x, weight = networks.draw(2, 3, *[5] * axes), networks.draw(4, 3, *[2] * axes)
        found = patches(x, [2] * axes, 1, 0, 1) @ weight.flatten(1).T
        torch.testing.assert_close(found.movedim(-1, 1), convolve(x, weight))

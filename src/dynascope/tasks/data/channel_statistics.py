"""Mean and standard deviation of every channel of images of bytes."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, UInt8

from dynascope.validation import require

__all__ = ["channel_statistics"]

_VALUES = np.arange(256)  # of a byte


def channel_statistics(
    pixels: UInt8[np.ndarray, "n height width channels"],
) -> tuple[Float[np.ndarray, " channels"], Float[np.ndarray, " channels"]]:
    """Mean and standard deviation of every channel, from how often each of the 256 values occurs.

    Args:
        pixels: Array (n, height, width, channels).

    Raises:
        InputError: A channel is constant.

    Example:
        >>> mean, deviation = channel_statistics(np.array([0, 0, 9, 9], np.uint8).reshape(1, 2, 2, 1))
        >>> mean.tolist(), deviation.tolist()
        ([4.5], [4.5])
    """
    found = []
    for channel in range(pixels.shape[-1]):
        # Image by image, since counting makes eight bytes of each.
        counts = sum(np.bincount(image[..., channel].ravel(), minlength=len(_VALUES)) for image in pixels)
        shares = counts / pixels[..., channel].size
        mean = shares @ _VALUES
        found.append((mean, np.sqrt(shares @ (_VALUES - mean) ** 2)))
        require(
            np.count_nonzero(shares) > 1,
            f"channel {channel + 1} of the images is constant",
            argument="scaling",
            value=float(mean),
            remedy="scale to the unit interval instead",
        )
    mean, deviation = np.array(found).T
    return mean, deviation

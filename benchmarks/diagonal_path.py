"""The path of saddles of a diagonal network, compared with scikit-learn's lasso path on the same data.

Both are active-set paths that end at least squares, with about as many knots as inputs. The targets are less than 5 ms
for 100 inputs and less than 2 s for 1000 inputs, each with three times as many samples. Both sides use one thread,
because most of their products are too small for more.
"""

from __future__ import annotations

import harness
import numpy as np
from sklearn.linear_model import lars_path
from threadpoolctl import threadpool_limits

from dynascope.theory.staircase.saddle_path import successive_saddles


def main() -> None:
    with threadpool_limits(limits=1):
        for inputs, seconds, repeats in ((100, 0.005, 41), (1000, 2.0, 3)):
            x, y = data(inputs)
            path, (_, _, coefficients) = harness.compare(
                f"diagonal path {inputs}",
                lambda x=x, y=y: successive_saddles(x, y),
                lambda x=x, y=y: lars_path(x, y, method="lasso", max_iter=10 * x.shape[1]),
                target=1.0,
                repeats=repeats,
            )
            exact = np.linalg.lstsq(x, y, rcond=None)[0]
            print(
                f"target: less than {seconds} s; {len(path.times)} jumps, {coefficients.shape[1] - 1} knots of the "
                f"lasso; largest error of the last map: ours {error(path.maps[-1], exact):.1e}, "
                f"theirs {error(coefficients[:, -1], exact):.1e}"
            )


def data(inputs: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(3 * inputs, inputs))
    return x, x[:, : inputs // 5] @ draw.normal(size=inputs // 5) + 0.5 * draw.normal(size=3 * inputs)


def error(found: np.ndarray, exact: np.ndarray) -> float:
    return float(np.max(np.abs(found - exact)))


if __name__ == "__main__":
    main()

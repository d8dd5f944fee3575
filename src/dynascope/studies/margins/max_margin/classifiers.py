"""Three parametrisations of linear classifiers, trained to large margins."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from dynascope.flows.margin_flow import MarginPath, margin_flow
from dynascope.theory.margins import normalised_margin, quasi_homogeneity

__all__ = ["CLASSIFIERS", "FACTORS", "ClassifierPath", "train_classifier"]


def _linear(p: Any, x: Any) -> Any:
    return x @ p["a"]


def _products(p: Any, x: Any) -> Any:
    return x @ (p["u"] * p["v"])


def _mixed(p: Any, x: Any) -> Any:
    return x[:, :-1] @ p["a"] + x[:, -1] * p["u"] * p["v"]


#: f = Σ β_j x_j where each β_j is one weight, each is a product of two, or only the last is a product.
CLASSIFIERS = {"linear": _linear, "products": _products, "mixed": _mixed}
#: Number of factors of each β_j.
FACTORS = {"linear": [1, 1], "products": [2, 2], "mixed": [1, 2]}


@dataclasses.dataclass(frozen=True, eq=False)
class ClassifierPath:
    """A classifier at recorded values of ν = log(1/L).

    Attributes:
        name: Name of the classifier in `CLASSIFIERS`.
        path: The result of `margin_flow`.
        weights: β, shape (levels, inputs).
    """

    name: str
    path: MarginPath
    weights: np.ndarray

    @property
    def scaled(self) -> np.ndarray:
        """β/ν."""
        return self.weights / self.path.level[:, None]

    @property
    def euclidean_margin(self) -> np.ndarray:
        """Smallest distance of a sample from the decision boundary."""
        return self.path.smallest_margin / np.linalg.norm(self.weights, axis=1)

    def rate_constant(self, rate: float) -> float:
        """L t (log t)^(2 − 2λ) at the last level, where λ is the largest growth rate."""
        late = self.path.log_time[-1]
        return float(np.exp(late - self.path.level[-1]) * late ** (2 - 2 * rate))

    def margin_kept(self) -> float:
        """The smallest ratio of the normalised margin to its earlier maximum, one if it never decreases."""
        rates = quasi_homogeneity(CLASSIFIERS[self.name], self.path.start, np.ones((1, self.weights.shape[1])))
        found = normalised_margin(self.path.margins, self.path.parameters, rates.vector)
        return float(np.min(found / np.maximum.accumulate(found)))


def train_classifier(name: str, start: Mapping[str, Any], z: np.ndarray, levels: np.ndarray) -> ClassifierPath:
    """Train a classifier on samples z = y x, from initial single weights `a` and factors `u` and `v` of products."""
    given = {each: np.asarray(value, np.float64) for each, value in start.items()}
    path = margin_flow(CLASSIFIERS[name], given, z, np.ones(len(z)), levels=levels)
    rows = [path.params(place) for place in range(len(path.level))]
    return ClassifierPath(name, path, np.array([_beta(each) for each in rows]))


def _beta(parameters: Mapping[str, np.ndarray]) -> np.ndarray:
    singles = parameters.get("a", np.zeros(0))
    products = np.atleast_1d(parameters["u"] * parameters["v"]) if "u" in parameters else np.zeros(0)
    return np.concatenate([singles, products])

"""Papers on which several theories rest, as records cite them."""

__all__ = ["ALTERNATING"]

ALTERNATING = (
    "D. Kunin, G. L. Marchetti, F. Chen, D. Karkada, J. B. Simon, M. R. DeWeese, S. Ganguli, N. Miolane, "
    "Alternating Gradient Flows: A Theory of Feature Learning in Two-layer Neural Networks (arXiv 2506.06489)"
)

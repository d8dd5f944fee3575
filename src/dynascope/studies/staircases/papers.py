"""Papers that several studies of staircases put to the test."""

__all__ = ["ALTERNATING", "COMPOSITION", "GREEDY"]

ALTERNATING = (
    "D. Kunin, G. L. Marchetti, F. Chen, D. Karkada, J. B. Simon, M. R. DeWeese, S. Ganguli, N. Miolane, "
    "Alternating Gradient Flows: A Theory of Feature Learning in Two-layer Neural Networks"
)
COMPOSITION = (
    "G. L. Marchetti, D. Kunin, A. Myers, F. Acosta, N. Miolane, Sequential Group Composition: A Window into "
    "the Mechanics of Deep Learning"
)
GREEDY = "Z. Li, Y. Luo, K. Lyu, Towards resolving the implicit bias of gradient descent for matrix factorization"

"""Papers that several studies of staircases put to the test, each with its arXiv identifier."""

__all__ = ["ALTERNATING", "COMPOSITION", "GREEDY"]

ALTERNATING = (
    "D. Kunin, G. L. Marchetti, F. Chen, D. Karkada, J. B. Simon, M. R. DeWeese, S. Ganguli, N. Miolane, "
    "Alternating Gradient Flows: A Theory of Feature Learning in Two-layer Neural Networks",
    "2506.06489",
)
COMPOSITION = (
    "G. L. Marchetti, D. Kunin, A. Myers, F. Acosta, N. Miolane, Sequential Group Composition: A Window into "
    "the Mechanics of Deep Learning",
    "2602.03655",
)
GREEDY = (
    "Z. Li, Y. Luo, K. Lyu, Towards resolving the implicit bias of gradient descent for matrix factorization",
    "2012.09839",
)

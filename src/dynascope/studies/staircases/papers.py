"""Papers that several studies of staircases put to the test, each with its arXiv identifier."""

from dynascope.theory import papers

__all__ = ["ALTERNATING", "COMPOSITION", "GREEDY"]

_PAPER, _, _NUMBER = papers.ALTERNATING.rstrip(")").partition(" (arXiv ")
ALTERNATING = (_PAPER, _NUMBER)
COMPOSITION = (
    "G. L. Marchetti, D. Kunin, A. Myers, F. Acosta, N. Miolane, Sequential Group Composition: A Window into "
    "the Mechanics of Deep Learning",
    "2602.03655",
)
GREEDY = (
    "Z. Li, Y. Luo, K. Lyu, Towards resolving the implicit bias of gradient descent for matrix factorization",
    "2012.09839",
)

"""Citations of papers that several theories or studies are based on."""

__all__ = [
    "ALTERNATING",
    "ATTENTION",
    "BALANCED",
    "BROKEN_ATTENTION",
    "COMPOSITION",
    "EIGENLEARNING",
    "GREEDY",
    "LIMITING_DYNAMICS",
    "NEURAL_MECHANICS",
    "NOETHER_DYNAMICS",
    "ON_A_LINE",
    "QUASI_HOMOGENEOUS",
    "SKILLS",
    "STOCHASTIC_COLLAPSE",
    "UNBALANCED",
]

ALTERNATING = (
    "D. Kunin, G. L. Marchetti, F. Chen, D. Karkada, J. B. Simon, M. R. DeWeese, S. Ganguli, N. Miolane, "
    "Alternating Gradient Flows: A Theory of Feature Learning in Two-layer Neural Networks (arXiv 2506.06489)"
)
ATTENTION = (
    "Y. Zhang, A. K. Singh, P. E. Latham, A. Saxe, Training dynamics of in-context learning in linear attention "
    "(arXiv 2501.16265)"
)
BALANCED = (
    "C. C. J. Dominé, N. Anguita, A. M. Proca, L. Braun, D. Kunin, P. A. M. Mediano, A. M. Saxe, From Lazy to Rich: "
    "Exact Learning Dynamics in Deep Linear Networks (arXiv 2409.14623)"
)
BROKEN_ATTENTION = (
    "E. Silverstein, D. Kunin, V. Shyam, Symmetry Breaking in Transformers for Efficient and Interpretable Training "
    "(arXiv 2601.22257)"
)
COMPOSITION = (
    "G. L. Marchetti, D. Kunin, A. Myers, F. Acosta, N. Miolane, Sequential Group Composition: A Window into "
    "the Mechanics of Deep Learning (arXiv 2602.03655)"
)
CONSERVATION = (
    "S. Marcotte, R. Gribonval, G. Peyré, Abide by the Law and Follow the Flow: Conservation Laws for Gradient Flows "
    "(arXiv 2307.00144)"
)
EIGENLEARNING = (
    "J. B. Simon, M. Dickens, D. Karkada, M. R. DeWeese, The eigenlearning framework: a conservation law perspective "
    "on kernel regression and wide neural networks (arXiv 2110.03922)"
)
GREEDY = (
    "Z. Li, Y. Luo, K. Lyu, Towards resolving the implicit bias of gradient descent for matrix factorization "
    "(arXiv 2012.09839)"
)
LIMITING_DYNAMICS = (
    "D. Kunin, J. Sagastuy-Breña, L. Gillespie, E. Margalit, H. Tanaka, S. Ganguli, D. L. K. Yamins, The Limiting "
    "Dynamics of SGD: Modified Loss, Phase Space Oscillations, and Anomalous Diffusion (arXiv 2107.09133)"
)
NEURAL_MECHANICS = (
    "D. Kunin, J. Sagastuy-Breña, S. Ganguli, D. L. K. Yamins, H. Tanaka, Neural Mechanics: Symmetry and Broken "
    "Conservation Laws in Deep Learning Dynamics (arXiv 2012.04728)"
)
NOETHER_DYNAMICS = (
    "H. Tanaka, D. Kunin, Noether's Learning Dynamics: Role of Symmetry Breaking in Neural Networks (arXiv 2105.02716)"
)
ON_A_LINE = (
    "Y. Xu, L. Ziyin, When Does Feature Learning Happen? Perspective from an Analytically Solvable Model "
    "(arXiv 2401.07085)"
)
QUASI_HOMOGENEOUS = (
    "D. Kunin, A. Yamamura, C. Ma, S. Ganguli, The Asymmetric Maximum Margin Bias of Quasi-Homogeneous Neural Networks "
    "(arXiv 2210.03820)"
)
SKILLS = (
    "Y. Nam, N. Fonseca, S. H. Lee, C. Mingard, A. A. Louis, An exactly solvable model for emergence and scaling laws "
    "in the multitask sparse parity problem (arXiv 2404.17563)"
)
STOCHASTIC_COLLAPSE = (
    "F. Chen, D. Kunin, A. Yamamura, S. Ganguli, Stochastic Collapse: How Gradient Noise Attracts SGD Dynamics Towards "
    "Simpler Subnetworks (arXiv 2306.04251)"
)
UNBALANCED = (
    "D. Kunin, A. Raventós, C. Dominé, F. Chen, D. Klindt, A. Saxe, S. Ganguli, Get rich quick: exact solutions "
    "reveal how unbalanced initializations promote rapid feature learning (arXiv 2406.06158)"
)

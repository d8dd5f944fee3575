from .candidate import Candidate as Candidate
from .candidate import Candidates as Candidates
from .candidate import Measured as Measured
from .initial_weights import default_scale as default_scale
from .observation import observe as observe
from .over_seeds import predict_seeds as predict_seeds
from .prediction import predict as predict
from .which_theory import which as which

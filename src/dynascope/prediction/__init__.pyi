from .over_seeds import predict_seeds as predict_seeds
from .prediction import predict as predict
from .which_theory import Candidate as Candidate
from .which_theory import Candidates as Candidates
from .which_theory import Measured as Measured
from .which_theory import which as which

from .over_seeds import predict_seeds as predict_seeds
from .prediction import predict as predict
from .which import USUAL_SCALE as USUAL_SCALE
from .which import Candidate as Candidate
from .which import Measured as Measured
from .which import which as which

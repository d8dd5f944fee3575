from .claim import Claim as Claim
from .claim import report_claims as report_claims
from .comparison import Agreement as Agreement
from .comparison import compare as compare
from .comparison import unjudged as unjudged
from .effect import Effect as Effect
from .effect import Hypothesis as Hypothesis
from .effect import report_effects as report_effects

from .initialisation import InitialisationExponents as InitialisationExponents
from .initialisation import initialisation_exponents as initialisation_exponents
from .saddle import saddle_escape_time as saddle_escape_time
from .strengths import DeepModeLimit as DeepModeLimit
from .strengths import DeepModeStrength as DeepModeStrength
from .strengths import deep_mode_limit as deep_mode_limit
from .strengths import strength_at as strength_at
from .strengths import time_to_strength as time_to_strength

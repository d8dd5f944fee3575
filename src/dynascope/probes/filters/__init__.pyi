from .gabor import gabor_fit as gabor_fit
from .scores import FilterScores as FilterScores
from .scores import filter_scores as filter_scores
from .scores import white_noise_scores as white_noise_scores
from .spectrum import roughness as roughness
from .spectrum import spectral_concentration as spectral_concentration

from .metrics import feature_metrics as feature_metrics
from .modes import Eigenfeatures as Eigenfeatures
from .modes import effective_dimension as effective_dimension
from .modes import eigenfeatures as eigenfeatures
from .modes import kappa_cka as kappa_cka
from .modes import quality as quality
from .moments import FeatureMoments as FeatureMoments
from .moments import feature_moments as feature_moments

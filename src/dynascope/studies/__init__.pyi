from .study import Reference as Reference
from .study import Study as Study
from .study import curve_tolerance as curve_tolerance
from .study import find_studies as find_studies
from .study import find_study as find_study

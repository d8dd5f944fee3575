from .expectation import Expectation as Expectation
from .files import from_file as from_file
from .gaussian import regression as regression
from .groups import encoding_from_fourier as encoding_from_fourier
from .groups import group_composition as group_composition
from .handwritten import digits as digits
from .task import Task as Task

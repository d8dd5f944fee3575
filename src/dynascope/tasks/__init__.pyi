from .expectation import Expectation as Expectation
from .files import from_file as from_file
from .gaussian import regression as regression
from .handwritten import digits as digits
from .task import Task as Task

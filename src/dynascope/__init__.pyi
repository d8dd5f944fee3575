from . import alternating as alternating
from . import comparison as comparison
from . import flows as flows
from . import groups as groups
from . import networks as networks
from . import plot as plot
from . import prediction as prediction
from . import probes as probes
from . import report as report
from . import results as results
from . import studies as studies
from . import symmetry as symmetry
from . import tasks as tasks
from . import theory as theory
from . import torch as torch
from . import training as training
from .comparison import compare as compare
from .networks import TwoLayer as TwoLayer
from .prediction import observe as observe
from .prediction import predict as predict
from .prediction import which as which
from .results import load as load
from .studies.index import study as study
from .tasks import Task as Task
from .tasks import digits as digits
from .tasks import read_table as read_table

__version__: str

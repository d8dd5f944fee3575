from .recorder.recorder import Recorder as Recorder
from .symmetry.program import Program as Program
from .symmetry.program import program as program
from .symmetry.watch_charges import WatchedCharges as WatchedCharges
from .symmetry.watch_charges import watch_charges as watch_charges
from .temperature import SamplingWarning as SamplingWarning
from .temperature import temperature as temperature

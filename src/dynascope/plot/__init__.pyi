from .figures import curves as curves
from .figures import figure as figure
from .figures import learned_features as learned_features
from .figures import plane as plane
from .figures import save_figure as save_figure
from .figures import staircase as staircase

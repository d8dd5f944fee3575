from .figures import curves as curves
from .figures import draw_chart as draw_chart
from .figures import features as features
from .figures import figure as figure
from .figures import plane as plane
from .figures import save_figure as save_figure
from .figures import staircase as staircase

from .extremal import ExtremalDirections as ExtremalDirections
from .extremal import extremal_directions as extremal_directions
from .orthogonal import orthogonal_staircase as orthogonal_staircase
from .path import AlignmentPath as AlignmentPath
from .path import alignment_path as alignment_path
from .plane import angle_within_arc as angle_within_arc

from .prediction import predict as predict
from .prediction import staircase_record as staircase_record

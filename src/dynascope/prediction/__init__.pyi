from .over_seeds import predict_seeds as predict_seeds
from .prediction import predict as predict

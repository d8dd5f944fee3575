from .prediction import predict as predict

"""How far SGD wanders at the end of training: exponents from the spectrum of the curvature, forecast and measured."""

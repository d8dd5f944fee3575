"""Linear models with the same function class but different feature strengths learn different functions."""

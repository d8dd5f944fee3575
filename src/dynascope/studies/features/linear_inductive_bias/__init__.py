"""Inductive bias of two linear models with the same function class but different feature strengths."""

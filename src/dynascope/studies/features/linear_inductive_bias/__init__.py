"""Inductive bias of two linear models with the same functions but different feature strengths."""

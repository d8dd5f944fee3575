"""Strings derived by random grammars."""

"""Composition in groups: addition modulo p, arithmetic modulo p, any finite group."""

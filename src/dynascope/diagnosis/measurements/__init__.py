"""The probes of recorders, one subject per module."""

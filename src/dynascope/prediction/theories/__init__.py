"""The theories from which `predict` and `which` choose."""

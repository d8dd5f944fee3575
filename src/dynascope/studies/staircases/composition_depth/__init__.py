"""Depth reduces the width needed to compose k group elements from exponential in k to constant."""

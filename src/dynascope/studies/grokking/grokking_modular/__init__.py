"""Networks that have fitted part of a modular arithmetic table generalise to the rest of the table later."""

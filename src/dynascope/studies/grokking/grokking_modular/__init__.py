"""Networks that have fitted part of a modular arithmetic table can later generalise to the rest of the table."""

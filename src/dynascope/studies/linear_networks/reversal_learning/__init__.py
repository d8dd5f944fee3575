"""Reversal learning: networks with unequal layers relearn quickly, and exactly balanced networks never do."""

"""Small language models with and without broken symmetry of their attention."""

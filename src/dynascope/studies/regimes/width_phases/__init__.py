"""Width phases: the parametrisation of a wide network decides whether it learns features."""

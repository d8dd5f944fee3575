"""Width phases: the parametrisation of a wide network determines whether it learns features."""

"""Student-teacher: the relative scale of the layers decides how fast a ReLU student learns features."""

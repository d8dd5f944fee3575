"""Transfer learning: the balance of the layers decides which features of an old task serve a new one."""

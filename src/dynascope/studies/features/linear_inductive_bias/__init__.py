"""Two linear models of the same functions and other intensities fit the same few points in other ways."""

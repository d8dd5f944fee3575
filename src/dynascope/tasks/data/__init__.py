"""Tasks from arrays, tables and images, and the handwritten digits of scikit-learn."""

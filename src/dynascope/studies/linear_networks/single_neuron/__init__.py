"""A single linear neuron learns lazily, richly or richly after a delay, depending on its initial weights."""

"""Whether training is lazy or rich: definition, measurement, and the dial that changes it."""

import numpy as np

from dynascope.studies.linear_networks.single_neuron.plane import in_plane


def test_vectors_of_the_plane_are_made_of_their_coordinates():
    start, target, weights = np.random.default_rng(0).normal(size=(3, 4))
    vectors = np.multiply.outer(weights, start) + np.multiply.outer(weights[::-1], target)
    along, across = in_plane(vectors, start, target)
    np.testing.assert_allclose(along**2 + across**2, np.sum(vectors**2, axis=-1), rtol=1e-12)
    np.testing.assert_allclose(along, vectors @ target / np.linalg.norm(target), rtol=1e-12)
    assert np.all(np.sign(across) == np.sign(weights))


def test_a_start_along_the_target_has_no_other_side():
    target = np.array([0.1, 0.2, 0.3])
    along, across = in_plane(np.eye(3), 0.7 * target, target)
    np.testing.assert_array_equal(across, 0)
    np.testing.assert_allclose(np.linalg.norm(along), 1.0)

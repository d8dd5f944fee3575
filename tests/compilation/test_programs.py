"""Programs for a processor are compiled the quick way wherever a function is the outermost one."""

import jax
import jax.numpy as jnp
import jaxlib.version
import numpy as np
import pytest

from dynascope.compilation import filter_jit, jit, programs


@pytest.fixture(autouse=True)
def _nothing_found_out(monkeypatch):
    """As in a process that has compiled nothing yet."""
    monkeypatch.setattr(programs, "_refused", set())


@jit
def wave(x):
    return jnp.sin(x) ** 2


def test_a_function_is_what_it_was_however_it_is_called():
    x = jnp.linspace(0.0, 3.0, 5)
    expected, slope = np.sin(x) ** 2, np.sin(2 * x)
    np.testing.assert_allclose(wave(x), expected, atol=1e-6)
    np.testing.assert_allclose(jax.vmap(wave)(x), expected, atol=1e-6)
    np.testing.assert_allclose(jax.vmap(jax.grad(wave))(x), slope, atol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(wave)))(x), slope, atol=1e-6)
    np.testing.assert_allclose(jax.jvp(wave, (x,), (jnp.ones(5),))[1], slope, atol=1e-6)
    np.testing.assert_allclose(jax.lax.map(wave, x), expected, atol=1e-6)


def test_it_is_called_with_numbers_within_another_function_that_is_compiled():
    assert float(jax.jit(lambda x: wave(2.0) + x)(1.0)) == pytest.approx(1 + np.sin(2) ** 2, rel=1e-6)


def test_what_it_raises_is_raised():
    with pytest.raises(ValueError, match="of the function itself"):
        jit(lambda x: _refuse())(1.0)


def test_its_program_can_be_read():
    assert "sine" in wave.lower(1.0).as_text()


def test_static_arguments_are_part_of_the_program():
    assert float(jit(lambda x, power: x**power, static_argnames="power")(3.0, power=2)) == 9
    assert filter_jit(lambda x, name: {name: 2 * x})(jnp.asarray(1.0), "twice") == {"twice": 2}


def test_an_option_that_a_compiler_does_not_know_is_asked_for_once_in_a_process(monkeypatch):
    monkeypatch.setattr(programs, "_OPTIONS", {"one": 1, "other": 2, "third": 3})
    asked = []

    def compiler(function, compiler_options=None):
        def call(x):
            asked.append([*compiler_options])
            for unknown in compiler_options.keys() - {"third"}:
                raise jax.errors.JaxRuntimeError(f"INVALID_ARGUMENT: No such compile option: '{unknown}'")
            return function(x)

        call.lower = None
        return call

    twice, thrice = (programs._compiled(compiler, lambda x, n=n: n * x, False, {}) for n in (2, 3))
    assert [twice(x) for x in (1.0, 2.0)] == [2, 4]
    assert (asked[0], len(asked[1]), asked[2:]) == (["one", "other", "third"], 2, [["third"]] * 2)
    assert thrice(2.0) == 6
    assert asked[4:] == [["third"]]


def test_what_else_a_compiler_does_not_like_is_raised():
    def compiler(function, compiler_options=None):
        def call(x):
            raise jax.errors.JaxRuntimeError("INVALID_ARGUMENT: No such compile option: 'of_somebody_else'")

        call.lower = None
        return call

    with pytest.raises(jax.errors.JaxRuntimeError, match="of_somebody_else"):
        programs._compiled(compiler, lambda x: x, False, {})(1.0)


@pytest.mark.parametrize(
    ("brief", "size", "options"),
    [(None, 500, programs._BRIEF), (None, 501, programs._OPTIONS), (False, 1, programs._OPTIONS)],
)
def test_programs_of_few_numbers_are_compiled_briefly_unless_they_run_for_long(brief, size, options):
    def compiler(function, compiler_options=None):
        def call(x, name):
            return compiler_options

        call.lower = None
        return call

    x = np.ones(size - 1), np.ones(())
    assert programs._compiled(compiler, lambda x, name: x, brief, {})(x, name="what is no array") == options


@pytest.mark.parametrize("compiled", [jit, filter_jit])
def test_the_installed_compiler_may_not_know_it(monkeypatch, compiled):
    for name in ("_OPTIONS", "_BRIEF"):
        monkeypatch.setattr(programs, name, {"xla_cpu_no_such_thing": True, "xla_backend_optimization_level": 1})
    assert float(compiled(lambda x: 2 * x)(jnp.asarray(3.0))) == 6
    assert programs._refused == {"xla_cpu_no_such_thing"}


def test_a_function_is_traced_once_where_its_compiler_does_not_know_an_option(monkeypatch):
    monkeypatch.setattr(programs, "_BRIEF", {"xla_cpu_no_such_thing": True})
    seen = []

    @jit
    def twice(x):
        seen.append(x.shape)
        return 2 * x

    assert float(twice(3.0)) == 6
    assert seen == [()]


@pytest.mark.parametrize("options", [programs._OPTIONS, programs._BRIEF])
def test_the_installed_compiler_knows_it(options):
    # That of jaxlib 0.11.2 has one way left to make loops, which nothing takes the place of.
    late = jaxlib.version.__version_info__ >= (0, 11)
    known = {name: value for name, value in options.items() if not late or name != "xla_cpu_use_fusion_emitters"}
    assert float(jax.jit(lambda x: 2 * x, compiler_options=known)(3.0)) == 6


def test_other_devices_have_their_own_ways(monkeypatch):
    def compiler(function, **options):
        def call(x):
            return function(x), bool(options)

        call.lower = None
        return call

    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert programs._compiled(compiler, lambda x: 2 * x, False, {})(1.0) == (2.0, False)


def _refuse():
    raise ValueError("an error of the function itself")

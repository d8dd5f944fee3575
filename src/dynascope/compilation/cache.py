"""Keep compiled programs in the user's cache directory, where the next run finds them."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import platform
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import platformdirs

from dynascope import __version__

__all__ = ["cache_directory", "compile_cache"]

_LARGEST = 2**29  # bytes that all programs may take; those of one study take about 10⁶
_PROGRAMS = "*-cache"  # how JAX names its files: program, key, and this


def cache_directory() -> Path | None:
    """Where dynascope keeps compiled programs: the folder `dynascope` in the user's cache directory.

    The environment variable `DYNASCOPE_CACHE` names another place, or is `off`.

    Returns:
        The directory, which need not exist; None if nothing is kept.

    Example:
        >>> os.environ["DYNASCOPE_CACHE"] = "off"
        >>> cache_directory()
        >>> del os.environ["DYNASCOPE_CACHE"]
    """
    chosen = os.environ.get("DYNASCOPE_CACHE", "")
    if chosen.lower() == "off":
        return None
    return Path(chosen).expanduser() if chosen else platformdirs.user_cache_path("dynascope", appauthor=False)


@contextlib.contextmanager
def compile_cache() -> Iterator[None]:
    """Find compiled programs of earlier runs, and keep new ones, within the context; also serves as a decorator.

    JAX keeps the programs, by what they compute, the flags of the compiler and the kind of device; each version of
    dynascope and each processor has a folder of its own. Together they take at most 512 MiB; those unused for
    longest are deleted. A program that cannot be read or written is compiled, without a warning.

    A cache that is set already, as by `JAX_COMPILATION_CACHE_DIR`, is left to JAX and its own settings. Afterwards all
    settings are what they were.

    Example:
        >>> import jax
        >>> with compile_cache():
        ...     float(jax.jit(lambda x: x + 1)(1.0))
        2.0
    """
    # The command line lists its studies without JAX.
    import jax
    from jax.experimental.compilation_cache.compilation_cache import reset_cache

    root = cache_directory()
    if getattr(jax.config, "jax_compilation_cache_dir", None) or root is None:
        yield
        return
    directory = root / "programs" / _kind()
    try:
        # For their owner alone: whoever may write into one of them can have this process run another program.
        for folder in reversed((directory, *directory.parents)):
            if not folder.is_dir():
                folder.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        yield
        return
    settings = {
        "jax_compilation_cache_dir": str(directory),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_raise_persistent_cache_errors": False,
        # JAX's own bound reads a file for every program there is whenever it writes one.
        "jax_compilation_cache_max_size": -1,
        # Those of a GPU would be bounded by nothing, and name this place in the key.
        "jax_persistent_cache_enable_xla_caches": "none",
    }
    before = {name: getattr(jax.config, name) for name in settings}
    kept = set(directory.glob(_PROGRAMS))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Error (reading|writing) persistent compilation cache entry")
        try:
            for name, value in settings.items():
                jax.config.update(name, value)
            reset_cache()
            yield
        finally:
            for name, value in before.items():
                jax.config.update(name, value)
            reset_cache()
            if set(directory.glob(_PROGRAMS)) - kept:
                _keep_within(_LARGEST, root / "programs")


def _kind() -> str:
    """What compiled programs depend on besides what JAX's own key holds: our version, and the processor."""
    processor = platform.processor()
    with contextlib.suppress(OSError):  # Linux only: the instructions that the processor has
        about = Path("/proc/cpuinfo").read_text()
        processor = "\n".join(sorted(set(re.findall(r"(?m)^(?:model name|flags|Features|CPU part|isa)\s*:.*$", about))))
    return f"{__version__}-{platform.machine()}-{hashlib.sha256(processor.encode()).hexdigest()[:16]}"


def _keep_within(largest: int, folders: Path) -> None:
    """Drop the programs that have not been used for longest."""
    found = []
    for path in folders.glob(f"*/{_PROGRAMS}"):
        with contextlib.suppress(OSError):
            about = path.stat()
            found.append((max(about.st_atime, about.st_mtime), about.st_size, path))
    found.sort(reverse=True)
    totals = itertools.accumulate(size for _, size, _ in found)
    for (_, _, path), total in zip(found, totals, strict=True):
        if total > largest:
            with contextlib.suppress(OSError):
                path.unlink()

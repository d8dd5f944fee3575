"""A cache of compiled programs in the user's cache directory."""

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

_LARGEST = 2**29  # maximum total size in bytes; the programs of one study take about 10⁶
_PROGRAMS = "*-cache"  # how JAX names its files: program, key, and this


def cache_directory() -> Path | None:
    """Return the directory of compiled programs: the folder `dynascope` in the user's cache directory.

    The environment variable `DYNASCOPE_CACHE` selects another directory, or disables the cache if it is `off`.

    Returns:
        The directory, which may not exist yet; None if the cache is disabled.

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
    """Reuse compiled programs of earlier runs and store new ones, as a context manager or decorator.

    JAX identifies a program by its operations, the compiler flags and the kind of device. Each version of dynascope and
    each processor model has its own folder. All programs together take up at most 512 MiB; the least recently used are
    deleted first. A program that cannot be read or written is compiled without a warning.

    If a JAX cache is already configured, for example by `JAX_COMPILATION_CACHE_DIR`, nothing is changed. On exit, the
    settings of JAX are restored.

    Example:
        >>> import jax
        >>> with compile_cache():
        ...     float(jax.jit(lambda x: x + 1)(1.0))
        2.0
    """
    # Imported here, so that the command line can list studies without loading JAX.
    import jax
    from jax.experimental.compilation_cache.compilation_cache import reset_cache

    root = cache_directory()
    if getattr(jax.config, "jax_compilation_cache_dir", None) or root is None:
        yield
        return
    directory = root / "programs" / _kind()
    try:
        # Accessible to the owner only, because anyone who can write here can make this process run another program.
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
        # With its own size limit, JAX reads one file per stored program at each write.
        "jax_compilation_cache_max_size": -1,
        # The caches of XLA for GPUs have no size limit, and their path becomes part of the key.
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
    """Return the version of dynascope and the processor model, which JAX's cache key does not contain."""
    processor = platform.processor()
    with contextlib.suppress(OSError):  # Linux only: the instruction set
        about = Path("/proc/cpuinfo").read_text()
        processor = "\n".join(sorted(set(re.findall(r"(?m)^(?:model name|flags|Features|CPU part|isa)\s*:.*$", about))))
    return f"{__version__}-{platform.machine()}-{hashlib.sha256(processor.encode()).hexdigest()[:16]}"


def _keep_within(largest: int, folders: Path) -> None:
    """Delete the least recently used programs."""
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

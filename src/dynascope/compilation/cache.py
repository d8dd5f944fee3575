"""Keep compiled programs in the user's cache directory, where the next run finds them."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import os
import platform
import re
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import zstandard

from dynascope import __version__

if sys.version_info >= (3, 14):
    from compression import zstd

__all__ = ["cache_directory", "compile_cache"]

_LARGEST = 2**29  # bytes that all programs may take; those of one study take about 10⁶
_PROGRAMS = "*-cache"  # how JAX names its files: program, key, and this
_TROUBLE = re.compile(r"Error (?:reading|writing) persistent compilation cache entry for '(?P<name>[^']*)'")


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
    with contextlib.suppress(RuntimeError):  # a user without a home
        if chosen:
            return Path(chosen).expanduser()
        if sys.platform == "win32":
            return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "dynascope"
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "dynascope"
        place = Path(os.environ.get("XDG_CACHE_HOME", ""))
        return (place if place.is_absolute() else Path.home() / ".cache") / "dynascope"
    return None


@contextlib.contextmanager
def compile_cache() -> Iterator[None]:
    """Find compiled programs of earlier runs, and keep new ones, within the context; also serves as a decorator.

    Programs are kept by JAX, by what they compute, the flags of the compiler and the kind of device; those of each
    version of dynascope, JAX and its library and of each processor lie in a folder of their own. Together they take at
    most 512 MiB, the longest unused being dropped. A directory that is damaged, full or read-only, or that other runs
    use, costs the time to compile: nothing is raised and nothing is said.

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
        # Those above it too, since whoever may write into one of them can put another in its place.
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
        # JAX's own bound needs another package, and a lock for each program, which a read-only place cannot give.
        "jax_compilation_cache_max_size": -1,
        # Those of a GPU would be bounded by nothing, and name this place in the key.
        "jax_persistent_cache_enable_xla_caches": "none",
    }
    before = {name: getattr(jax.config, name) for name in settings}
    kept = set(directory.glob(_PROGRAMS))
    with _silently() as troubled, _with_checksums():
        try:
            _set(settings)
            reset_cache()
            yield
        finally:
            _set(before)
            reset_cache()
            now = set(directory.glob(_PROGRAMS))
            # JAX never writes over a program, so that a damaged one would have to be compiled for ever.
            _remove(path for path in now if path.name.rpartition("-")[0].rpartition("-")[0] in troubled)
            if now - kept:
                _keep_within(_LARGEST, root / "programs")


def _set(settings: dict[str, Any]) -> None:
    import jax  # not at the top, as above

    for name, value in settings.items():
        jax.config.update(name, value)


def _kind() -> str:
    """What compiled programs depend on besides what JAX's own key holds."""
    import jax  # not at the top, as above
    import jaxlib.version

    versions = f"jax-{jax.__version__}-jaxlib-{jaxlib.version.__version__}"
    processor = hashlib.sha256(_processor().encode()).hexdigest()[:16]
    return f"dynascope-{__version__}-{versions}-{platform.machine()}-{processor}"


def _processor() -> str:
    """The model of the processor and the instructions that it has."""
    with contextlib.suppress(OSError):
        told = Path("/proc/cpuinfo").read_text()
        return "\n".join(sorted(set(re.findall(r"(?m)^(?:model name|flags|Features|CPU part|isa)\s*:.*$", told))))
    if sys.platform == "darwin":
        with contextlib.suppress(OSError):
            asked = ["sysctl", "-n", "machdep.cpu.brand_string"]
            return subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    return platform.processor()


@contextlib.contextmanager
def _with_checksums() -> Iterator[None]:
    """Pack programs with a checksum of what they are.

    Without one, as JAX packs them, a bit that has changed on the disk is taken for part of the program: the process
    crashes, or counts wrongly. Whoever unpacks looks at the checksum where there is one. With zlib there always is.
    """
    packer, name, option = zstandard, "ZstdCompressor", {"write_checksum": True}
    if sys.version_info >= (3, 14):  # where JAX takes what comes with Python
        packer, name, option = zstd, "compress", {"options": {zstd.CompressionParameter.checksum_flag: True}}
    before = getattr(packer, name)

    @functools.wraps(before)
    def checked(*given: Any, **chosen: Any) -> Any:
        # Who says more than JAX does, such as a level, chooses for himself.
        return before(*given, **(option if len(given) < 2 and not chosen else chosen))

    setattr(packer, name, checked)
    try:
        yield
    finally:
        setattr(packer, name, before)


@contextlib.contextmanager
def _silently() -> Iterator[set[str]]:
    """Collect the names of programs that could not be read or written, of which JAX would warn."""
    troubled: set[str] = set()
    with warnings.catch_warnings():
        show = warnings.showwarning

        def collect(message: Warning | str, *told: Any, **more: Any) -> None:
            trouble = _TROUBLE.match(str(message))
            if trouble:
                troubled.add(trouble["name"])
            else:
                show(message, *told, **more)

        warnings.filterwarnings("always", message=_TROUBLE.pattern)
        warnings.showwarning = collect
        yield troubled


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink()


def _keep_within(largest: int, folders: Path) -> None:
    """Drop the programs that have not been used for longest."""
    found = []
    for path in folders.glob(f"*/{_PROGRAMS}"):
        with contextlib.suppress(OSError):
            about = path.stat()
            found.append((max(about.st_atime, about.st_mtime), about.st_size, path))
    found.sort(reverse=True)
    totals = itertools.accumulate(size for _, size, _ in found)
    _remove(path for (_, _, path), total in zip(found, totals, strict=True) if total > largest)

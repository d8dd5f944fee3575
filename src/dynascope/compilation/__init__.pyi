from .cache import cache_directory as cache_directory
from .cache import compile_cache as compile_cache
from .callbacks import without_callbacks as without_callbacks

__all__ = ["cache_directory", "compile_cache", "without_callbacks"]

from .cache import cache_directory as cache_directory
from .cache import compile_cache as compile_cache
from .precision import AnyArray as AnyArray
from .precision import float64_jit as float64_jit
from .programs import filter_jit as filter_jit
from .programs import jit as jit

__all__ = ["AnyArray", "cache_directory", "compile_cache", "filter_jit", "float64_jit", "jit"]

# The compiled module (python/module.cc). Its wrappers in this folder carry the types.
from typing import Any

def __getattr__(name: str) -> Any: ...

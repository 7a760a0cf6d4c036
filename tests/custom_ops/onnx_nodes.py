"""The onnx package's backend node tests of `Attention`: one-node models with inputs and expected outputs."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from ml_dtypes import bfloat16
from onnx.backend.test.case.node import collect_testcases

# onnx computes these references step by step in the tensors' own type: a few roundings of each.
ROUNDING = {np.dtype(np.float32): 1e-5, np.dtype(np.float16): 2e-3, np.dtype(bfloat16): 1.6e-2}
EXPANDED = "_expanded"


def node_cases(expanded: bool = False) -> list[Any]:
    """Every test case of one Attention node, or the same cases written out in other operators."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    found = [case for case in cases if case.model is not None and case.name.startswith("test_attention")]
    return [case for case in found if case.name.endswith(EXPANDED) == expanded]

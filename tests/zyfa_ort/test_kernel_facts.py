"""Which kernel ran, in which precision, and why: what is told is what the numbers and the machine code say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from custom_ops.gpu_session import emulated_device
from custom_ops.op_session import ATTENTION, one_node_model
from kernels.select.cases import tensors
from ml_dtypes import bfloat16, float8_e4m3fn
from zyfa_ort.kernels import emulator
from zyfa_ort.kernels.code_objects import path as code_object
from zyfa_ort.kernels.select import KERNELS
from zyfa_ort.kernels.select.table import PRODUCTS

import zyfa_ort
from custom_ops import known_rounding
from zyfa_ort.errors import InputError
from zyfa_ort.kernel_facts import KernelFact

GPU, CPU = "ZyfaExecutionProvider", "CPUExecutionProvider"
PREFILL = {"bf16": "bf16_prefill_d128", "fp8": "fp8_prefill_d128_hilo_f32"}
TYPES = {"bf16": "bfloat16", "fp8": "float8e4m3fn", "fp32": "float"}


@pytest.fixture(autouse=True)
def emulated_hip() -> None:
    emulated_device()


def written(folder: Path, inputs: dict[str, Any], out: Any = np.float32, **attributes: Any) -> Path:
    onnx.save(one_node_model(ATTENTION, inputs, {"output": out}, attributes), folder / "model.onnx")
    return folder / "model.onnx"


def fact(folder: Path, inputs: dict[str, Any], device: Any, **attributes: Any) -> KernelFact:
    (found,) = zyfa_ort.attention_kernels(written(folder, inputs, **attributes), inputs, device)
    return found


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("precision", ["bf16", "fp8"])
def test_claimed_precision_is_the_one_that_computes(tmp_path: Path, precision: str, device: Any) -> None:
    """By numbers: 17/16 counts as 1 in Q, K and V with FP8, and as itself with BF16."""
    inputs = known_rounding.inputs()
    model = written(tmp_path, inputs, precision=precision, **known_rounding.ATTRIBUTES)
    (found,) = zyfa_ort.attention_kernels(model, inputs, device)
    assert (found.qk, found.pv) == (TYPES[precision], TYPES[precision])
    assert found.provider == (GPU if device == "gpu" else CPU)
    assert found.why.startswith(f"precision {precision}: ")
    assert PREFILL[precision] in found.kernels if device == "gpu" else found.kernels == ("cpu",)
    output = zyfa_ort.run(zyfa_ort.session(model, device), inputs)["output"]
    wanted = known_rounding.answer(rounded=found.qk == "float8e4m3fn")
    for column, value in enumerate(wanted):
        np.testing.assert_allclose(output[..., column], value, rtol=known_rounding.TOLERANCE)


@pytest.mark.parametrize("row", [r for r in KERNELS if r.family in PRODUCTS], ids=lambda row: row.kernel)
def test_products_are_those_of_the_machine_code(row: Any) -> None:
    """FP8 kernels multiply FP8 numbers alone, the others bfloat16 ones alone."""
    code = Path(code_object(row.code_object)).read_bytes()
    text = [line.text for line in emulator.disassemble(code, row.kernel)]
    products = {word for line in text for word in line.split()[:1] if word.startswith(("v_mfma", "v_smfmac"))}
    assert products
    fp8 = {word for word in products if "fp8" in word or "f8f6f4" in word}
    bf16 = {word for word in products if "bf16" in word}
    assert products == (fp8 if PRODUCTS[row.family][0] == "float8e4m3fn" else bf16)


def test_decode_of_codes_is_not_called_fp8(tmp_path: Path) -> None:
    found = fact(tmp_path, tensors(2, 200, (128, 128), np.float32), "gpu", precision="fp8")
    assert found.kernels[-2:] == ("decode_e4m3_128_128_16", "decode_combine")
    assert (found.qk, found.pv) == ("bfloat16", "bfloat16")
    assert "the exact softmax of the FP8 inputs" in found.why


def test_quantised_inputs_masks_and_bias(tmp_path: Path) -> None:
    codes = tensors(40, 70, (128, 128), float8_e4m3fn) | {"key_mask": np.ones((1, 70), np.int64)}
    found = fact(tmp_path, codes, "gpu", out_dtype=1)
    assert found.kernels == ("key_range", "fp8_prefill_d128_hilo_f32")
    biased = tensors(40, 70, (64, 64)) | {"attn_bias": np.zeros((40, 70), bfloat16)}
    found = fact(tmp_path, biased, "gpu", softcap=2.0, out=bfloat16)
    assert found.kernels == ("bf16_prefill_d64_general",)
    flat = {name: x.reshape(*x.shape[:2], -1) for name, x in tensors(40, 70, (128, 128)).items()}
    found = fact(tmp_path, flat, "gpu", num_heads=2, kv_num_heads=1, out=bfloat16)
    assert found.kernels == ("bf16_prefill_d128",)


def test_options_of_the_provider_count(tmp_path: Path) -> None:
    inputs = tensors(40, 70, (128, 128), np.float32)
    model = written(tmp_path, inputs, precision="fp8", rotation="hadamard")
    (found,) = zyfa_ort.attention_kernels(model, inputs, "gpu", provider_options={"precision": "bf16"})
    assert (found.qk, found.kernels[-1]) == ("bfloat16", "bf16_prefill_d128")


def test_a_node_that_fell_back_is_told_as_the_cpus(tmp_path: Path) -> None:
    inputs = tensors(40, 70, (128, 128), np.float32)
    model = written(tmp_path, inputs)
    (found,) = zyfa_ort.attention_kernels(model, inputs, "gpu", provider_options={"allow_fallback": "1"})
    assert (found.provider, found.kernels, found.qk) == (CPU, ("cpu",), "float")


def test_bf16_edge_tiles_are_said(tmp_path: Path) -> None:
    found = fact(tmp_path, tensors(40, 70, (128, 128), np.float32), "cpu", precision="fp8", fp8_edges="bf16")
    assert found.why.endswith("; edge tiles in bfloat16")


def test_a_node_without_a_name(tmp_path: Path) -> None:
    inputs = tensors(40, 70, (128, 128))
    model = one_node_model(ATTENTION, inputs, {"output": bfloat16}, {})
    model.graph.node[0].name = ""
    onnx.save(model, tmp_path / "model.onnx")
    with pytest.raises(
        InputError, match="expected a name for every ZyfaPrefillAttention node, found one without"
    ):
        zyfa_ort.attention_kernels(tmp_path / "model.onnx", inputs, "cpu")

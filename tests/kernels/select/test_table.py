"""The table of kernels against what the code objects say of themselves."""

from __future__ import annotations

import pytest
from kernels.select.emulated_host import code_object
from zyfa_ort.kernels import code_objects
from zyfa_ort.kernels.asm.fp8_config import shipped
from zyfa_ort.kernels.emulator import Kernel, kernels
from zyfa_ort.kernels.select import KERNELS, KernelRow
from zyfa_ort.kernels.select.layouts import LAYOUTS

HIP = ("bf16_prefill", "bf16_prefill_general", "decode", "quantize", "convert")
SIZES = {"pointer": 8, "i64": 8, "u64": 8, "i32": 4, "u32": 4, "f32": 4}


def metadata(row: KernelRow) -> Kernel:
    (found,) = [k for k in kernels(code_object(row.code_object)) if k.name == row.kernel]
    return found


@pytest.mark.parametrize("row", KERNELS, ids=lambda row: row.kernel)
def test_a_row_says_what_the_code_object_says(row: KernelRow) -> None:
    found = metadata(row)
    layout = LAYOUTS[row.layout]
    assert found.lds_bytes == row.lds_bytes
    assert found.explicit_bytes() == layout.size
    assert row.work_items == found.max_workgroup
    assert found.private_bytes == 0
    if layout.header:
        assert [(a.offset, a.size, a.kind) for a in found.parameters] == [(0, layout.size, "by_value")]
    else:
        described = [(f.name, f.offset, SIZES[f.kind], f.kind == "pointer") for f in layout.fields]
        assert [(a.name, a.offset, a.size, a.is_buffer) for a in found.parameters] == described


def test_kernels_of_the_package_are_the_rows() -> None:
    there = {k.name for name in HIP for k in kernels(code_objects.load(name))}
    assert {row.kernel for row in KERNELS} == there | {config.name for config in shipped()}
    assert len({row.kernel for row in KERNELS}) == len(KERNELS)


def test_blocks_pack_and_refuse_other_names() -> None:
    layout = LAYOUTS["hadamard"]
    block = layout.pack({"count": 2**40, "rotation": 64, "blocks": 3})
    assert block == bytes(16) + (2**40).to_bytes(8, "little") + bytes([64, 0, 0, 0, 3, 0, 0, 0])
    with pytest.raises(KeyError, match="blocks"):
        layout.pack({"count": 1, "rotation": 64})
    with pytest.raises(KeyError, match="rows"):
        layout.pack({"count": 1, "rotation": 64, "blocks": 3, "rows": 1})

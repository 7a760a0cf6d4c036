"""What nobody has published about the chip, chosen by environment variables of the emulated HIP device."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.emulator.hip_api import in_process

from kernels.emulator import hip_api

CONVERT = '''
body = PROLOGUE + """
  global_load_dword v2, v1, s[8:9]
  s_waitcnt vmcnt(0)
  v_cvt_pk_u8_f32 v3, v2, 0, 0
  global_store_dword v1, v3, s[12:13]
"""
x = np.arange(64, dtype=np.float32) / 4 - 2
given, got = hip.upload(x), hip.upload(np.zeros(64, np.uint32))
function = hip.function(code_object(body))
assert hip.launch(function, 1, 64, [given, given, got]) == 0
print(*hip.download(got, np.zeros(64, np.uint32)))
'''


@pytest.mark.parametrize(("word", "rule"), [
    ("", np.rint), ("nearest_even", np.rint), ("truncate", np.trunc)])  # fmt: skip
def test_byte_rounding(word: str, rule: np.ufunc) -> None:
    done = in_process(CONVERT, ZYFA_EMULATED_BYTE_ROUNDING=word)
    wanted = np.maximum(rule(np.arange(64) / 4 - 2), 0).astype(int)
    assert done.stdout.split() == [str(one) for one in wanted], done.stderr


def test_a_mistaken_word_fails_every_call() -> None:
    calls = "print(hip.code('Init', 0), hip.code('DeviceSynchronize'), hip.code('SetDevice', 0))"
    done = in_process(calls, ZYFA_EMULATED_BYTE_ROUNDING="floor")
    assert done.stdout.split() == [str(hip_api.INVALID_VALUE)] * 3
    assert (
        "emulated gfx950: ZYFA_EMULATED_BYTE_ROUNDING: expected nearest_even or truncate, got 'floor'"
        in done.stderr
    )

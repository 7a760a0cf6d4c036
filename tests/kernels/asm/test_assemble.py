"""The assembler driver: what it makes, and what it says when it cannot."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest
from kernels.emulator.wave_kernel import kernel_text
from zyfa_ort.kernels.asm import assemble as driver
from zyfa_ort.kernels.asm import output_check, rocm, toolchain
from zyfa_ort.kernels.asm.assemble import assemble, compile_hip, file_stem, hip_assembly, main
from zyfa_ort.kernels.errors import ToolchainError

GOOD = kernel_text("  s_nop 0\n")
HIP = """
extern "C" __attribute__((global)) void first(float* x) { x[__builtin_amdgcn_workitem_id_x()] += 1.0f; }
extern "C" __attribute__((global)) void second(float* x) { x[__builtin_amdgcn_workitem_id_x()] *= 2.0f; }
"""


def refusal(text: str, name: str = "kernel", **options: list[str]) -> str:
    with pytest.raises(ToolchainError) as error:
        assemble(text, name, **options)
    message = str(error.value)
    assert "\n" not in message
    return message


def line_number(text: str, part: str) -> int:
    return next(i for i, line in enumerate(text.splitlines(), 1) if part in line)


# --- what it makes


def test_the_kernels_of_the_text_are_in_the_code_object():
    assert output_check.kernels_of(assemble(GOOD)) == ["kernel"]
    assert output_check.kernels_of(compile_hip(HIP)) == ["first", "second"]


def test_instructions_arrive_as_machine_code():
    code = assemble(kernel_text("  v_add_f32_e32 v3, v4, v5\n"))
    assert (0x02 << 24 | 1 << 24 | 3 << 17 | 5 << 9 | 256 + 4).to_bytes(4, "little") not in code
    # VOP2: 0 | opcode 1 (6 bits) | vdst (8) | vsrc1 (8) | src0 (9)
    assert (1 << 25 | 3 << 17 | 5 << 9 | 256 + 4).to_bytes(4, "little") in code


@pytest.mark.parametrize("make", [lambda: assemble(GOOD), lambda: compile_hip(HIP)], ids=["assembly", "HIP"])
def test_the_same_text_gives_the_same_bytes_without_paths(make, monkeypatch, tmp_path):
    first = make()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CPATH", "/nowhere/include")
    assert make() == first
    for path in (str(tmp_path), str(Path.cwd()), str(Path.home()), "zyfa-asm", "zyfa-hip"):
        assert path.encode() not in first


def test_a_hip_source_gives_the_same_bytes_as_path_and_as_text(tmp_path):
    source = tmp_path / "somewhere" / "twice.hip"
    source.parent.mkdir()
    source.write_text(HIP + "__attribute__((device, used)) const char* here = __FILE__;\n")
    from_path = compile_hip(source)
    assert from_path == compile_hip(source.read_text(), "twice")
    assert b"twice.hip" in from_path
    assert str(tmp_path).encode() not in from_path


def test_hip_sources_see_their_neighbours_and_the_include_folders(tmp_path):
    (tmp_path / "near.hpp").write_text("#define GLOBAL __attribute__((global))\n")
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "far.hpp").write_text("#define STEP 3.0f\n")
    source = tmp_path / "k.hip"
    source.write_text('#include "near.hpp"\n#include "far.hpp"\nGLOBAL void k(float* x) { *x += STEP; }\n')
    assert output_check.kernels_of(compile_hip(source, include=[tmp_path / "far"])) == ["_Z1kPf"]


def test_the_assembly_of_a_hip_source_assembles_to_the_same_code_object():
    text = hip_assembly(HIP)
    assert text.count(".amdhsa_kernel ") == 2
    assert assemble(text) == compile_hip(HIP)


@pytest.mark.parametrize("name", ["../../etc/x", "-o", "a b;rm *", "", "ü" * 300, "fmha<128>"])
def test_names_become_harmless_file_names(name):
    stem = file_stem(name)
    assert stem.replace("_", "").isalnum() or set(stem) == {"_"}
    assert stem.isascii() and len(stem) <= 80
    assert assemble(GOOD, name) == assemble(GOOD)


# --- what it says


def test_a_refused_instruction_is_quoted_with_its_line():
    text = kernel_text("  s_nop 0\n  v_frobnicate v1, v2 // why\n")
    at = line_number(text, "v_frobnicate")
    assert refusal(text, "fp8") == f"fp8.s line {at} 'v_frobnicate v1, v2 // why': invalid instruction"


def test_further_errors_are_counted():
    assert "(and 2 more)" in refusal(kernel_text("  v_foo v1\n  v_foo v2\n  v_foo v3\n"))


def test_origins_of_lines_are_named():
    text = kernel_text("  s_nop 0\n  v_foo v1\n")
    origins = [""] * len(text.splitlines())
    origins[line_number(text, "v_foo") - 1] = "fp8_prefill.py:88"
    assert "'v_foo v1' (from fp8_prefill.py:88): " in refusal(text, origins=origins)


@pytest.mark.parametrize(
    ("body", "origin"),
    [
        ("  v_foo v1 // from: gen.py:12", "(from gen.py:12)"),
        ("  // from: gen.py:13\n  s_nop 1\n  v_foo v1", "(from gen.py:13)"),
        ("  // from: gen.py:14\n  s_nop 1 // from: gen.py:15\n  v_foo v1", "(from gen.py:15)"),
        ("  // from: gen.py:16\n\n  v_foo v1", None),
        ("  v_foo v1\n  // from: gen.py:17", None),
    ],
)
def test_origin_comments_reach_down_to_an_empty_line(body, origin):
    message = refusal(kernel_text(body + "\n"))
    assert origin in message if origin else "from" not in message


def test_an_error_inside_a_macro_names_the_line_that_used_it():
    text = kernel_text(".macro twice reg\n  v_foo \\reg\n.endm\n  twice v7\n")
    assert f"line {line_number(text, 'twice v7')} 'twice v7'" in refusal(text)


def test_warnings_of_the_assembler_are_refusals():
    assert "fourth" in refusal(kernel_text('  .warning "look at the fourth lane"\n'))


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("__attribute__((global)) void k() { nothing(); }", "k.hip line 1"),
        ("__attribute__((global)) void k(int x) { }", "unused parameter 'x'"),
        ("#include <vector>\n", "'vector' file not found"),
        ("int host() { return 1; }\n", "no kernel"),
    ],
)
def test_refused_hip_sources(source, part):
    with pytest.raises(ToolchainError, match=r"k[.]") as error:
        compile_hip(source, "k")
    assert part in str(error.value)


def test_an_error_in_a_header_names_the_header(tmp_path):
    (tmp_path / "broken.hpp").write_text("\n\nint x = ;\n")
    source = tmp_path / "k.hip"
    source.write_text('#include "broken.hpp"\n')
    with pytest.raises(
        ToolchainError, match=r"^broken.hpp line 3 \(included by k.hip\): expected expression"
    ):
        compile_hip(source)


def test_a_missing_hip_source_is_named(tmp_path):
    with pytest.raises(ToolchainError, match=r"gone.hip: expected a HIP source, found no file"):
        compile_hip(tmp_path / "gone.hip")


# --- complete output only


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.split(".amdgpu_metadata")[0], "without AMDGPU metadata"),
        (lambda t: t.replace("- .name: kernel", "- .name: other"), "'kernel' is missing in the metadata"),
        (lambda t: t.replace(".globl kernel\n", ""), "needs .globl kernel"),
        (lambda t: t.replace("  s_nop 0\n", "").replace("  s_endpgm\n", ""), "'kernel' has no instructions"),
        (lambda t: t.replace(".size kernel, .Lend-kernel\n", ""), "'kernel' has no instructions"),
        (lambda t: t.split(".rodata")[0] + t[t.index(".amdgpu_metadata") :], "declares no kernel"),
        (lambda t: t.replace("s_nop 0", "s_getpc_b64 s[4:5]\n  s_add_u32 s4, s4, away@rel32@lo+4"), "undefined symbol: away"),
        (lambda t: "", "without AMDGPU metadata"),
        (lambda t: t.replace("--gfx950", "--gfx942"), "kernel.s line 2"),
    ],
    ids=["no metadata", "other name", "local", "no code", "no size", "no descriptor", "undefined", "empty", "other target"],
)  # fmt: skip
def test_incomplete_kernels_are_refused(change, message):
    changed = change(GOOD)
    assert changed != GOOD
    assert message in refusal(changed)


def test_two_kernels_of_which_one_lacks_metadata():
    text = hip_assembly(HIP)
    begin, end = text.index("  - .agpr_count", text.index("second.kd") - 900), text.index("amdhsa.target")
    second = text.rindex("  - .agpr_count", begin, end)
    assert "'second' is missing in the metadata, which lists ['first']" in refusal(text[:second] + text[end:])


@pytest.mark.parametrize("kept", [0, 3, 40, 64, 700, 1200])
def test_truncated_code_objects_are_refused(kept):
    with pytest.raises(ToolchainError):
        output_check.check(assemble(GOOD)[:kept], GOOD, "kernel.s")


# --- toolchains


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def zig_passed_on(program: str) -> str:
    """A shell line that hands everything to the real tool."""
    tools = toolchain._candidates()[-1]
    return f'exec {" ".join(tools.clang if program == "clang" else tools.lld)} "$@"'


@pytest.fixture
def fake_rocm(monkeypatch, tmp_path):
    """A ROCm folder whose clang and ld.lld are shell scripts."""

    def make(clang: str, lld: str) -> Path:
        script(tmp_path / "llvm" / "bin" / "clang", clang)
        script(tmp_path / "llvm" / "bin" / "ld.lld", lld)
        monkeypatch.setenv("ROCM_PATH", str(tmp_path))
        return tmp_path

    toolchain._toolchain.cache_clear()
    yield make
    toolchain._toolchain.cache_clear()


def test_rocm_is_preferred_and_makes_the_same_code_object(fake_rocm):
    ours = assemble(GOOD)
    folder = fake_rocm(zig_passed_on("clang"), zig_passed_on("lld"))
    assert toolchain.toolchain().name == f"ROCm clang {folder}/llvm/bin/clang"
    assert assemble(GOOD) == ours


def test_rocm_without_linker_does_not_count(fake_rocm):
    folder = fake_rocm(zig_passed_on("clang"), "exit 0")
    (folder / "llvm" / "bin" / "ld.lld").unlink()
    assert rocm.commands() is None
    assert toolchain.toolchain().name == "ziglang wheel"


TOO_OLD = "echo \"clang: error: unsupported CPU 'gfx950'\" >&2; exit 1"


def test_a_rocm_too_old_for_gfx950_gives_way_to_ziglang(fake_rocm):
    fake_rocm(TOO_OLD, "exit 0")
    assert toolchain.toolchain().name == "ziglang wheel"


def test_only_a_toolchain_that_is_too_old(fake_rocm, monkeypatch):
    fake_rocm(TOO_OLD, "exit 0")
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)
    message = refusal(GOOD)
    assert "cannot make gfx950 code (clang: error: unsupported CPU 'gfx950'); LLVM 20 or later" in message


def test_a_clang_that_only_warns_of_an_unknown_processor_is_too_old(fake_rocm):
    fake_rocm("echo \"'gfx950' is not a recognized processor for this target\" >&2", "exit 0")
    assert toolchain.toolchain().name == "ziglang wheel"


def test_no_toolchain_at_all(fake_rocm, monkeypatch, tmp_path):
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)
    assert "found no ROCm clang and no ziglang wheel; install ROCm 7 or the ziglang wheel" in refusal(GOOD)


@pytest.mark.parametrize(
    ("lld", "message"),
    [
        ("exit 0", "the linker wrote 0 bytes and no ELF file"),
        ('for last; do :; done; printf partial > "$last"', "wrote 7 bytes and no ELF file"),
        ("echo 'ld.lld: warning: odd' >&2", "the linker refuses it: ld.lld: warning: odd"),
        ("kill -SEGV $$", "was ended by signal 11"),
    ],
    ids=["nothing", "partial", "warning", "crash"],
)
def test_a_linker_that_writes_too_little(fake_rocm, lld, message):
    fake_rocm(zig_passed_on("clang"), lld)
    assert message in refusal(GOOD)


def test_a_toolchain_that_hangs(fake_rocm, monkeypatch):
    fake_rocm(zig_passed_on("clang"), "exec sleep 60")
    toolchain.toolchain()
    monkeypatch.setattr(toolchain, "TIMEOUT_SECONDS", 0.5)
    assert "did not finish within 0.5 seconds" in refusal(GOOD)


def test_a_clang_that_fails_without_a_place(fake_rocm):
    probe_passes = 'case "$*" in *" - "*) exit 0;; esac; echo "LLVM ERROR: out of everything" >&2; exit 3'
    fake_rocm(probe_passes, "exit 0")
    assert refusal(GOOD) == "kernel.s: clang refuses it: LLVM ERROR: out of everything"


# --- the command line


def test_the_command_line_writes_the_code_object(tmp_path):
    (tmp_path / "in.s").write_text(GOOD)
    assert main([str(tmp_path / "in.s"), str(tmp_path / "out.co")]) == 0
    assert (tmp_path / "out.co").read_bytes() == assemble(GOOD)
    assert (tmp_path / "out.co").stat().st_mode & 0o444


def test_the_command_line_runs_as_a_module(tmp_path):
    (tmp_path / "in.hip").write_text(HIP)
    command = [sys.executable, "-m", "zyfa_ort.kernels.asm.assemble", "--hip", "in.hip", "out.co"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert (tmp_path / "out.co").read_bytes() == compile_hip(HIP, "in")


def test_a_failing_command_keeps_the_old_file(tmp_path, capsys):
    (tmp_path / "in.s").write_text("nonsense\n")
    (tmp_path / "out.co").write_bytes(b"old")
    assert main([str(tmp_path / "in.s"), str(tmp_path / "out.co")]) == 1
    assert capsys.readouterr().err == "error: in.s line 1 'nonsense': invalid instruction\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.s", "out.co"]
    assert (tmp_path / "out.co").read_bytes() == b"old"


def test_an_interrupted_write_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk is full")))
    with pytest.raises(OSError, match="full"):
        driver.write_atomically(tmp_path / "out.co", b"new")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_input_is_one_line(tmp_path, capsys):
    assert main([str(tmp_path / "gone.s"), str(tmp_path / "out.co")]) == 1
    assert "gone.s" in capsys.readouterr().err

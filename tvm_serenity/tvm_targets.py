"""TVM targets as users write them: ``native`` for this machine, or TVM's own text."""

import json
import platform
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import tvm

from tvm_serenity.errors import InputError, UnsupportedError

NATIVE = "native"
"""The target text for this machine's processor with all of its instructions."""


SAME_NAME = ("avx", "avx2", "fma", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
VECTORS = {name: name for name in SAME_NAME} | {
    "avx512vnni": "avx512_vnni",
    "avxvnni": "avx_vnni",
    "avx512vbmi": "avx512vbmi",
}
"""Vector instructions that a virtual machine may hide: LLVM's name and the operating system's."""
MORE = {"sse4.2": "sse4_2", "bmi2": "bmi2"}
"""Further instructions that compilers use without request, under both names."""
ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64", "i686": "i386"}
"""Alternative names of architectures."""
WITHOUT = ("x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64")
"""Generic processors for machines that hide instructions, the most capable first."""
CPUINFO = Path("/proc/cpuinfo")


@cache
def native() -> Any:
    """Return the target of this machine, with LLVM's name of its processor.

    If the operating system hides vector instructions of the processor, the target is the most
    capable entry of ``WITHOUT`` whose instructions are all present.
    """
    cpu = tvm.get_global_func("target.llvm_get_system_cpu", allow_missing=True)
    if cpu is None:
        return tvm.target.Target("llvm")
    shown = _shown()
    made = [tvm.target.Target({"kind": "llvm", "mcpu": name}) for name in (str(cpu()), *WITHOUT)]
    fit = (
        t
        for t in made
        if shown is None or all(s in shown or not has_feature(t, v) for v, s in VECTORS.items())
    )
    return next(fit, tvm.target.Target("llvm"))


def _shown() -> frozenset[str] | None:
    """Return the instruction sets that Linux reports for an x86 processor; None if unknown."""
    try:
        lines = CPUINFO.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    flags = next((line for line in lines if line.startswith("flags")), None)
    return None if flags is None else frozenset(flags.partition(":")[2].split())


def names_processor(target: tvm.target.Target) -> bool:
    """Return whether a target names a processor or its features, not just a kind."""
    attrs = dict(target.attrs) if target.attrs else {}
    return bool(attrs.get("mcpu") or attrs.get("mattr"))


def with_plain_loops(target: tvm.target.Target) -> Any:
    """Return ``target`` without LLVM's loop vectoriser, which miscompiles some kernels.

    Kernels compiled for it are right but slower; other forms are compared with them.
    ``kernels.safe_indices`` says which kernels the vectoriser may miscompile.
    """
    if str(target.kind.name) != "llvm":
        return target
    made = dict(target.export())
    made["cl-opt"] = [*made.get("cl-opt", ()), "-vectorize-loops:bool=false"]
    return tvm.target.Target(made)


def unoptimised(target: tvm.target.Target) -> Any:
    """Return ``target`` without LLVM's optimisations, for kernels that are compiled but rarely run.

    Compilation takes a third of the time.
    """
    if str(target.kind.name) != "llvm":
        return target
    return tvm.target.Target({**dict(target.export()), "opt-level": 0})


def architecture(target: tvm.target.Target) -> str:
    """Return the architecture of a target, this machine's if the target names none."""
    attrs = dict(target.attrs) if target.attrs else {}
    found = str(attrs.get("mtriple") or platform.machine()).partition("-")[0].lower()
    return ARCHITECTURES.get(found, found)


def is_aarch64(target: tvm.target.Target) -> bool:
    """Return whether LLVM compiles a target for AArch64, whose processors all have NEON."""
    return str(target.kind.name) == "llvm" and architecture(target) == "aarch64"


def instructions(target: tvm.target.Target) -> tuple[str, ...]:
    """Return the vector instructions of an x86 target, under the operating system's names."""
    return tuple(s for name, s in (VECTORS | MORE).items() if has_feature(target, name))


def check_runs_here(what: str, built_for: str, wanted: Sequence[str]) -> None:
    """Raise :class:`UnsupportedError` if this machine lacks an architecture or instructions.

    ``what`` names the code that would run, for the message. Nothing is missing if the system does
    not report its instructions.
    """
    own = ARCHITECTURES.get(platform.machine().lower(), platform.machine().lower())
    if built_for != own:
        raise UnsupportedError(f"{what} is for {built_for}, and this machine is {own}")
    shown = _shown()
    missing = [name for name in wanted if shown is not None and name not in shown]
    if missing:
        raise UnsupportedError(
            f"{what} uses instructions that this machine lacks: {', '.join(missing)}; "
            "--target native is this machine, --target llvm any of its kind"
        )


def runs_here(target: tvm.target.Target) -> bool:
    """Return whether this machine can run code that LLVM compiles for a target."""
    if str(target.kind.name) != "llvm":
        return False
    try:
        check_runs_here("it", architecture(target), instructions(target))
    except UnsupportedError:
        return False
    return True


def current() -> Any:
    """Return the target in scope, or this machine's if there is none."""
    return tvm.target.Target.current(allow_none=True) or native()


def has_feature(target: tvm.target.Target, name: str) -> bool:
    """Return whether a target's processor has a feature, by LLVM's name ("avx2", "neon")."""
    known = tvm.get_global_func("target.llvm_cpu_has_feature", allow_missing=True)
    return known is not None and bool(known(name, target))


def target_of(text: str) -> Any:
    """Return the target of a text: "native", a kind, a tag, or JSON.

    Raises :class:`InputError` if TVM does not know it.
    """
    if text == NATIVE:
        return native()
    try:
        return tvm.target.Target(json.loads(text) if text.startswith("{") else text)
    except Exception as error:  # TVM's parser raises many types
        raise InputError(f"--target {text}: {str(error).strip().splitlines()[-1]}") from error


def named(target: tvm.target.Target) -> str:
    """Return the display name of a target: its kind, and its processor if it names one."""
    attrs = dict(target.attrs) if target.attrs else {}
    more = [f"-{key}={attrs[key]}" for key in ("mtriple", "mcpu") if attrs.get(key)]
    return " ".join([str(target.kind.name), *more])

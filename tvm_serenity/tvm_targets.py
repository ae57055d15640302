"""TVM targets by what users write: ``native``, the machine that this runs on, or TVM's own text."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import tvm

from tvm_serenity.errors import InputError

NATIVE = "native"
"""The processor of this machine, with all of its instructions."""


SAME_NAME = ("avx", "avx2", "fma", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
VECTORS = {name: name for name in SAME_NAME} | {
    "avx512vnni": "avx512_vnni",
    "avxvnni": "avx_vnni",
}
"""Instructions that a virtual machine may hide from a processor that has them: LLVM's name, and
that of the system."""
WITHOUT = ("x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64")
"""Processors for where some are hidden, the best one first."""
CPUINFO = Path("/proc/cpuinfo")


@cache
def native() -> Any:
    """Return the target of this machine: its processor, as LLVM calls it.

    Where the system does not show all vector instructions that the processor would have, it is the
    best one of ``WITHOUT`` whose instructions are there.
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
    """The instructions that the system says an x86 processor has; None where it does not say."""
    try:
        lines = CPUINFO.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    flags = next((line for line in lines if line.startswith("flags")), None)
    return None if flags is None else frozenset(flags.partition(":")[2].split())


def current() -> Any:
    """Return the target in scope, or that of this machine."""
    return tvm.target.Target.current(allow_none=True) or native()


def has_feature(target: tvm.target.Target, name: str) -> bool:
    """Return whether a target's processor has a feature, as LLVM calls it ("avx2", "neon")."""
    known = tvm.get_global_func("target.llvm_cpu_has_feature", allow_missing=True)
    return known is not None and bool(known(name, target))


def target_of(text: str) -> Any:
    """Return the target that a text names: "native", a kind, a tag, or JSON.

    Raises :class:`InputError` where TVM knows none.
    """
    if text == NATIVE:
        return native()
    try:
        return tvm.target.Target(json.loads(text) if text.startswith("{") else text)
    except Exception as error:  # whatever TVM's parser raises
        raise InputError(f"--target {text}: {str(error).strip().splitlines()[-1]}") from error


def named(target: tvm.target.Target) -> str:
    """Return how a target is said: its kind, and its processor where it names one."""
    attrs = dict(target.attrs) if target.attrs else {}
    more = [f"-{key}={attrs[key]}" for key in ("mtriple", "mcpu") if attrs.get(key)]
    return " ".join([str(target.kind.name), *more])

"""TVM targets by what users write: ``native``, the machine that this runs on, or TVM's own text."""

import json
from functools import cache
from typing import Any

import tvm

from tvm_serenity.errors import InputError

NATIVE = "native"
"""The processor of this machine, with all of its instructions."""


@cache
def native() -> Any:
    """Return the target of this machine: its processor, as LLVM calls it."""
    cpu = tvm.get_global_func("target.llvm_get_system_cpu", allow_missing=True)
    return tvm.target.Target({"kind": "llvm", **({"mcpu": str(cpu())} if cpu is not None else {})})


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

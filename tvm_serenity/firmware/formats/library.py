"""What the libraries of several build systems share: where sources and header are, the contract."""

from tvm_serenity.firmware.emit.c import PORT_HEADER, file, sources_of
from tvm_serenity.firmware.emit.origin import about_origin, with_licence
from tvm_serenity.firmware.emit.project import Files, Layout, network
from tvm_serenity.firmware.program import Program

VERSION = "1.0.0"
CONTRACT = """\
/* Without compiler options of its own: a product that is added must be rounded twice. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif
"""
"""What kernels begin with where a build system sets no options for a folder of sources."""
FLAGS = "-O2 -ffp-contract=off"
"""What kernels are compiled with elsewhere: for time, and a product that is added rounded twice."""


def placed(program: Program, layout: Layout, sources: str, interface: str) -> Files:
    """Return the network in the folder ``sources``, its public headers in ``interface``.

    Each ends with "/" unless it is "".
    """
    public = {file(program, "model.h"), file(program, PORT_HEADER)}
    return {
        f"{interface if name in public else sources}{name}": data
        for name, data in network(program, layout).items()
    }


def with_contract(program: Program, files: Files, folder: str) -> Files:
    """Return ``files`` with kernels, in ``folder``, that compile right without an option."""
    kernels = folder + file(program, "kernels.c")
    source = files[kernels]
    licence, _, rest = source.partition(b"\n")
    return {**files, kernels: licence + b"\n" + CONTRACT.encode() + rest}


def completed(program: Program, layout: Layout, files: Files, texts: dict[str, str]) -> Files:
    """Return ``files`` with ``texts``, which get licences, and with NOTICE and LICENSE."""
    made = with_licence({name: text.encode() for name, text in texts.items()})
    return {**files, **made, **about_origin(program.name, layout.metadata or {})}


def listed(program: Program, folder: str) -> str:
    """Return the C sources and object files in ``folder`` as a list of CMake."""
    names = [*sources_of(program), *program.objects]
    return " ".join(f"{folder}{name}" for name in names)


def title(program: Program) -> str:
    """Return what the library is, in a sentence."""
    return f"The network {program.name} in C: kernels and weights, one static arena, no heap."

"""The C sources of a kernel set and of the loader of its blobs."""

from importlib import resources

from tvm_serenity.firmware.blob.image import MAGIC, TYPES, VERSION, core_number
from tvm_serenity.firmware.blob.kernel_set import DIGEST_BYTES, KernelSet, SetKernel
from tvm_serenity.firmware.c_names import C_TYPES
from tvm_serenity.firmware.emit.c import join
from tvm_serenity.firmware.emit.header import LITTLE_ENDIAN
from tvm_serenity.firmware.integers import INTEGERS
from tvm_serenity.firmware.kernels.sources import texts

ARENA_ALIGNMENT = 16


def set_files(known: KernelSet) -> dict[str, str]:
    """Return the C files of a kernel set by their names."""
    name = known.name
    return {
        f"{name}_blob.h": header(known),
        f"{name}_blob.c": loader(known),
        f"{name}_kernels.h": kernels_header(known),
        f"{name}_kernels.c": kernels_source(known),
    }


def trial_source(known: KernelSet) -> str:
    """Return the function ``serenity_blob`` that runs a blob once, for comparisons."""
    return _resource("trial.c", known)


def harness_source(known: KernelSet, region: str) -> str:
    """Return the program that runs the blob in a slot of flash; its arena is in ``region``."""
    return _resource("harness.c", known).replace("$R", region)


def header(known: KernelSet) -> str:
    """Return ``NAME_blob.h``, the interface."""
    upper = known.name.upper()
    macros = {
        "KERNELS": f"{len(known.kernels)}",
        "ARENA_BYTES": f"{known.arena_bytes}",
        "ARENA_ALIGNMENT": f"{ARENA_ALIGNMENT}",
        **{f"TYPE_{dtype.upper()}": f"{number}u" for dtype, number in TYPES.items()},
    }
    return join(
        [
            f"{_banner(known, 'the interface of a kernel set')}#ifndef {upper}_BLOB_H\n"
            f"#define {upper}_BLOB_H\n\n#include <stdbool.h>\n#include <stddef.h>\n"
            f"#include <stdint.h>\n\n{LITTLE_ENDIAN}"
            '#ifdef __cplusplus\nextern "C" {\n#endif\n',
            "/* The kernels of the set; the largest arena of the models that it was made for;\n"
            "   types of elements. */\n"
            + "".join(f"#define {upper}_{macro} {value}\n" for macro, value in macros.items()),
            _resource("blob.h", known),
            "#ifdef __cplusplus\n}\n#endif\n\n#endif\n",
        ]
    )


def loader(known: KernelSet) -> str:
    """Return ``NAME_blob.c``, which loads and runs blobs."""
    include = f'#include "{known.name}_kernels.h"\n'
    return join([f"{_banner(known, 'the loader of blobs')}{include}", _resource("blob.c", known)])


def kernels_header(known: KernelSet) -> str:
    """Return ``NAME_kernels.h``, which the loader alone includes."""
    name, upper = known.name, known.name.upper()
    macros = {
        "MAGIC": f"{MAGIC:#010x}u",
        "VERSION": f"{VERSION}u",
        "CORE": f"{core_number(known.core):#010x}u",
        "ARGUMENTS": f"{max((len(k.params) for k in known.kernels), default=1)}",
    }
    return join(
        [
            f"{_banner(known, 'the kernels of the set')}#ifndef {upper}_KERNELS_H\n"
            f'#define {upper}_KERNELS_H\n\n#include "{name}_blob.h"\n',
            "".join(f"#define {upper}_{macro} {value}\n" for macro, value in macros.items()),
            "/* A kernel: what identifies its code, how many arguments, integers and extents of\n"
            "   local arrays it takes, the bits of the arguments that it writes, and the most\n"
            "   elements of its local arrays. */\n"
            "typedef struct {\n    uint32_t digest[2];\n"
            f"    void (*run)(void *const *at, const int32_t *{INTEGERS});\n"
            "    const uint32_t *most;\n    uint32_t written;\n"
            "    uint16_t arguments, integers, extents;\n"
            f"}} {name}_kernel;\n\nextern const {name}_kernel {name}_kernels[{upper}_KERNELS];\n",
            "#endif\n",
        ]
    )


def kernels_source(known: KernelSet) -> str:
    """Return ``NAME_kernels.c``: the used files of the library, the kernels, and their table."""
    name, upper = known.name, known.name.upper()
    rows = "".join(f"    {_row(kernel, i)},\n" for i, kernel in enumerate(known.kernels))
    return join(
        [
            f"{_banner(known, 'the kernels of the set')}"
            f'#include "{name}_kernels.h"\n\n#include <math.h>\n#include <string.h>\n',
            *texts(file for kernel in known.kernels for file in kernel.support),
            *(_functions(kernel, i) for i, kernel in enumerate(known.kernels)),
            f"const {name}_kernel {name}_kernels[{upper}_KERNELS] = {{\n{rows}}};\n",
        ]
    )


def _functions(kernel: SetKernel, index: int) -> str:
    """Return a kernel, the function that unpacks its arguments, and the extents of its arrays."""
    mark = "restrict " if kernel.restrict else ""
    params = [
        f"{'const ' if p.readonly else ''}{C_TYPES[p.dtype]} *{mark}{p.name}" for p in kernel.params
    ]
    given = [f"at[{i}]" for i in range(len(params))]
    body = kernel.text.format(*kernel.extents).rstrip()
    if not kernel.integers:
        body = f"    (void){INTEGERS};\n{body}"
    integers = f"const int32_t *{mark}{INTEGERS}"
    extents = ", ".join(f"{extent}u" for extent in kernel.extents) or "0u"
    return (
        # If it were inlined, compilers would not know that its parameters share no bytes.
        f"/* {kernel.name} */\n"
        f"NOT_INLINED void kernel_{index}({', '.join([*params, integers])})\n{{\n{body}\n}}\n"
        f"static void run_{index}(void *const *at, const int32_t *{INTEGERS})\n{{\n"
        f"    kernel_{index}({', '.join([*given, INTEGERS])});\n}}\n"
        f"static const uint32_t most_{index}[] = {{{extents}}};\n"
    )


def _row(kernel: SetKernel, index: int) -> str:
    words = bytes.fromhex(kernel.digest)
    digest = ", ".join(
        f"{int.from_bytes(words[i : i + 4], 'little'):#010x}u" for i in range(0, DIGEST_BYTES, 4)
    )
    written = sum(1 << i for i, param in enumerate(kernel.params) if not param.readonly)
    counts = f"{len(kernel.params)}, {kernel.integers}, {len(kernel.extents)}"
    return f"{{{{{digest}}}, run_{index}, most_{index}, {written:#x}u, {counts}}}"


def _banner(known: KernelSet, title: str) -> str:
    return (
        f"/* {known.name}: {title}, for {known.core}. Generated by tvm-serenity; do not edit. */\n"
    )


def _resource(name: str, known: KernelSet) -> str:
    path = resources.files("tvm_serenity.firmware") / "blob" / name
    text = path.read_text(encoding="utf-8")
    return text.replace("$N", known.name).replace("$U", known.name.upper())

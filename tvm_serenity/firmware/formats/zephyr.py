"""A Zephyr module."""

from tvm_serenity.firmware.emit.c import sources_of
from tvm_serenity.firmware.emit.origin import about_origin, with_licence
from tvm_serenity.firmware.emit.project import Files, Layout, network
from tvm_serenity.firmware.program import Program


def zephyr(program: Program, layout: Layout) -> Files:
    """Return a Zephyr module: add its path to ZEPHYR_EXTRA_MODULES, set its Kconfig option."""
    option = f"SERENITY_{program.name.upper()}"
    made = {f"src/{name}": data for name, data in network(program, layout).items()}
    sources = " ".join(f"src/{name}" for name in sources_of(program))
    sources += "".join(f" src/{name}" for name in program.objects)
    texts = {
        "zephyr/module.yml": f"name: {program.name}\nbuild:\n  cmake: .\n  kconfig: Kconfig\n",
        "Kconfig": f'config {option}\n\tbool "The network {program.name}"\n\tdefault y\n'
        "\thelp\n\t  Kernels in C, no heap.\n",
        "CMakeLists.txt": f"if(CONFIG_{option})\n  zephyr_library_named({program.name})\n"
        f"  zephyr_library_sources({sources})\n"
        "  # A product that is added is rounded twice, as the model's own runtime does.\n"
        "  zephyr_library_compile_options(-ffp-contract=off)\n"
        "  zephyr_include_directories(src)\nendif()\n",
    }
    files = with_licence({name: text.encode() for name, text in texts.items()})
    return {**made, **files, **about_origin(program.name, layout.metadata or {})}

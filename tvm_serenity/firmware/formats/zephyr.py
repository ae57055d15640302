"""A Zephyr module."""

from tvm_serenity.firmware.emit.project import Files, Layout
from tvm_serenity.firmware.formats.library import FLAGS, completed, listed, placed
from tvm_serenity.firmware.program import Program


def written(program: Program, layout: Layout) -> Files:
    """Return a Zephyr module: add its path to ZEPHYR_EXTRA_MODULES, set its Kconfig option."""
    option = f"SERENITY_{program.name.upper()}"
    made = placed(program, layout, "src/", "src/")
    texts = {
        "zephyr/module.yml": f"name: {program.name}\nbuild:\n  cmake: .\n  kconfig: Kconfig\n",
        "Kconfig": f'config {option}\n\tbool "The network {program.name}"\n\tdefault y\n'
        "\thelp\n\t  Kernels in C, no heap.\n",
        "CMakeLists.txt": f"if(CONFIG_{option})\n  zephyr_library_named({program.name})\n"
        f"  zephyr_library_sources({listed(program, 'src/')})\n"
        "  # A product that is added is rounded twice, as the model's own runtime does.\n"
        f"  zephyr_library_compile_options({FLAGS})\n"
        "  zephyr_include_directories(src)\nendif()\n",
    }
    return completed(program, layout, made, texts)

"""A component of ESP-IDF."""

from tvm_serenity.firmware.emit.project import Files, Layout
from tvm_serenity.firmware.formats.library import FLAGS, VERSION, completed, listed, placed, title
from tvm_serenity.firmware.program import Program


def written(program: Program, layout: Layout) -> Files:
    """Return a component: its folder goes into ``components`` or ``EXTRA_COMPONENT_DIRS``."""
    made = placed(program, layout, "src/", "include/")
    texts = {
        "CMakeLists.txt": f"idf_component_register(SRCS {listed(program, 'src/')}\n"
        '  INCLUDE_DIRS "include" PRIV_INCLUDE_DIRS "src")\n'
        "# A product that is added is rounded twice, as the model's own runtime does.\n"
        f"target_compile_options(${{COMPONENT_LIB}} PRIVATE {FLAGS})\n",
        "idf_component.yml": f'version: "{VERSION}"\ndescription: "{title(program)}"\n'
        "license: Apache-2.0\n",
    }
    return completed(program, layout, made, texts)

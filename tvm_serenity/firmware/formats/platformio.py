"""A library of PlatformIO."""

import json

from tvm_serenity.firmware.emit.c import file
from tvm_serenity.firmware.emit.project import Files, Layout
from tvm_serenity.firmware.formats.library import FLAGS, VERSION, completed, placed, title
from tvm_serenity.firmware.program import Program


def written(program: Program, layout: Layout) -> Files:
    """Return a library: its folder goes into ``lib``, or is installed."""
    about = {
        "name": program.name,
        "version": VERSION,
        "description": title(program),
        "keywords": ["neural network", "inference"],
        "license": "Apache-2.0",
        "headers": file(program, "model.h"),
        "frameworks": "*",
        "platforms": "*",
        "build": {"flags": FLAGS},
    }
    made = placed(program, layout, "src/", "include/")
    return completed(program, layout, made, {"library.json": json.dumps(about, indent=2) + "\n"})

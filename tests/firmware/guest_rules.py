"""The rules of each build system for the files that describe a library to it."""

import json
import re
from pathlib import Path

import yaml

LICENCE = "Apache-2.0"
VERSION = re.compile(r"\d+\.\d+\.\d+")


def sources(folder: Path) -> None:
    """The README tells IDEs what to do."""
    assert "Keil" in (folder / "README.md").read_text()


def zephyr(folder: Path) -> None:
    """The module's description, and the folders that it names."""
    about = yaml.safe_load((folder / "zephyr" / "module.yml").read_text())
    assert about["name"] == "net"
    assert (folder / about["build"]["cmake"] / "CMakeLists.txt").is_file()
    assert "config SERENITY_NET\n" in (folder / about["build"]["kconfig"]).read_text()


def esp_idf(folder: Path) -> None:
    """The component's name, version and licence; sources and folders of the list are all there."""
    about = yaml.safe_load((folder / "idf_component.yml").read_text())
    assert set(about) == {"version", "description", "license"}
    assert VERSION.fullmatch(about["version"])
    assert about["description"]
    assert about["license"] == LICENCE
    lists = (folder / "CMakeLists.txt").read_text()
    (named,) = re.findall(r"idf_component_register\(SRCS ([^\n]*)", lists)
    assert sorted(named.split()) == sorted(f"src/{path.name}" for path in folder.glob("src/*.c"))
    for places in re.findall(r'INCLUDE_DIRS "([^"]*)"', lists):
        assert (folder / places).is_dir()


def platformio(folder: Path) -> None:
    """The limits of PlatformIO's schema, and a header that is there."""
    about = json.loads((folder / "library.json").read_text())
    assert re.fullmatch(r"[^:;/,@<>]{1,100}", about["name"])
    assert VERSION.fullmatch(about["version"])
    assert 0 < len(about["description"]) < 256
    assert all(re.fullmatch(r"[a-z\d\- \+]{1,50}", word) for word in about["keywords"])
    assert about["license"] == LICENCE
    assert about["platforms"] == about["frameworks"] == "*"
    assert set(about["build"]) == {"flags"}
    assert (folder / "include" / about["headers"]).is_file()


def arduino(folder: Path) -> None:
    """The library's description, and the header that it names."""
    lines = (folder / "library.properties").read_text().splitlines()
    about = dict(line.split("=", 1) for line in lines)
    assert VERSION.fullmatch(about["version"])
    assert (folder / "src" / about["includes"]).is_file()

"""The reference of options, and their JSON Schema, are what the dataclasses say."""

import importlib.util
import re
from dataclasses import MISSING
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.docs.pages import DOCS, PAGES, ROOT
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.options.option import defaults_of, options_of
from tvm_serenity.options.schema import schema

_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
OTHERS = {
    "--break-system-packages",
    "--help",
    "--install-completion",
    "--version",
}
"""Flags of other programs, and of the command line itself."""


@pytest.fixture(scope="module")
def page() -> Any:
    spec = importlib.util.spec_from_file_location("options_table", DOCS / "options_table.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_option_of_every_command_is_in_the_reference(page: Any) -> None:
    text = page.on_page_markdown((DOCS / "reference" / "options.md").read_text())
    assert page.MARK not in text
    sections = dict(re.findall(r"^## serenity ([a-z ]+)$(.*?)(?=^## |\Z)", text, re.M | re.S))
    assert set(sections) == set(page.commands())
    for name, groups in page.commands().items():
        for group in groups:
            for one in options_of(group).values():
                assert f"`{one.flag}" in sections[name], f"{name} {one.flag}"
                assert one.help in sections[name]


def test_what_does_not_go_together_is_in_the_guide_to_firmware(page: Any) -> None:
    text = page.on_page_markdown((DOCS / "how-to" / "firmware.md").read_text())
    assert page.BUILD_MARK not in text
    for one in options_of(Settings).values():
        for conflict in one.conflicts:
            if conflict.other in options_of(Settings):
                assert conflict.why in text
    assert "`--rows N`, `--rows auto`, `--stream-input`, `--recompute`" in text
    assert "`--external-arena` with `--format mlf`, `--format arduino`" in text


def test_serenitys_flags_in_the_docs_are_options(page: Any) -> None:
    """A line that begins with a command of ours names no option that it does not have."""
    known = {"serenity": set(OTHERS)}
    for name, groups in page.commands().items():
        found = known.setdefault(name.partition(" ")[0], {"--board", *OTHERS})
        for group in groups:
            for one in options_of(group).values():
                found.update((*one.flag.split("/"), one.short))
    wrong = []
    for path in PAGES:
        for line in (ROOT / path).read_text().splitlines():
            for asked in re.findall(r"serenity ([a-z]+)([^|`#&;]*)", line):
                if asked[0] in known:
                    wrong += [
                        f"{path}: {asked[0]} {flag}"
                        for flag in _FLAG.findall(asked[1])
                        if flag not in known[asked[0]]
                    ]
    assert wrong == []


def test_the_schema_accepts_what_the_dataclass_accepts(page: Any) -> None:
    for name, found in page.schemas().items():
        Draft202012Validator.check_schema(found)
        validator = Draft202012Validator(found)
        (group,) = (g for g in page.commands()[name] if g.__name__ == found["title"])
        defaults = {k: v for k, v in defaults_of(group).items() if v is not MISSING}
        plain = {k: found["properties"][k]["default"] for k in defaults}
        required = dict.fromkeys(found["required"], "x")
        assert not list(validator.iter_errors({**plain, **required})), name
        assert validator.is_valid({**required, "nothing": 1}) is False


@pytest.mark.parametrize(
    ("given", "accepted"),
    [
        ({"rows": 2}, True),
        ({"rows": "auto", "overlap": True}, True),
        ({"rows": 0}, False),
        ({"rows": "x"}, False),
        ({"stack_bytes": -1}, False),
        ({"codegen": "llvm", "workspace": "grow"}, False),
        ({"codegen": "llvm", "workspace": "least"}, True),
        ({"rows": 2, "in_place": True}, False),
        ({"rows": "off", "in_place": True}, True),
        ({"rows": "off", "ram_bytes": 9000}, True),
        ({"format": "mlf", "external_arena": True}, False),
        ({"format": "zephyr", "external_arena": True}, True),
        ({"format": "arduino", "codegen": "llvm"}, False),
    ],
)
def test_the_schema_refuses_what_the_dataclass_refuses(
    given: dict[str, Any], accepted: bool
) -> None:
    assert Draft202012Validator(schema(Settings)).is_valid(given) == accepted
    if accepted:
        Settings(**given)
    else:
        with pytest.raises(Exception, match="--"):
            Settings(**given)

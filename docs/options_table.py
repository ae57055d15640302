"""Puts the options of all commands, made from their dataclasses, into the pages that ask."""

import json
from dataclasses import MISSING
from typing import Any

MARK = "<!-- options -->"
BUILD_MARK = "<!-- conflicts of build -->"


def commands() -> dict[str, list[type]]:
    """Return the groups of options of every command, by its name."""
    from tvm_serenity.cli import derive
    from tvm_serenity.cli.commands import register

    register()
    found: dict[str, list[type]] = {}
    for one in derive.REGISTERED:
        name = f"{one.prefix} {one.name}".strip()
        found[name] = list(derive.groups_of(one.handler).values())
    return dict(sorted(found.items()))


def options() -> str:
    """Return the options of every command as Markdown: a section and a table each."""
    sections = []
    for name, groups in commands().items():
        rows = [row for group in groups for row in _rows(group)]
        rows.sort(key=lambda row: row[0])
        head = "| | option | what it does | default |\n|---|---|---|---|\n"
        lines = "\n".join(f"| {' | '.join(row[1:])} |" for row in rows)
        conflicts = "".join(_conflicts(group) for group in groups)
        more = f"\n\nWhat does not go together:\n\n{conflicts}" if conflicts else ""
        sections.append(f"## serenity {name}\n\n{head}{lines}{more}")
    return "\n\n".join(sections)


def _rows(group: type) -> list[tuple[int, str, str, str, str]]:
    """The options of a group: where they stand, their section, flag, meaning and default."""
    from tvm_serenity.cli.derive import help_of, metavar_of
    from tvm_serenity.options.option import HelpGroup, defaults_of, options_of

    defaults, found = defaults_of(group), []
    for name, one in options_of(group).items():
        default = defaults[name]
        plain = isinstance(default, int | float | str) and not isinstance(default, bool)
        shown = (
            "required" if default is MISSING else f"`{default}`" if plain and default != "" else ""
        )
        value = metavar_of(one)
        takes = f" {value}" if value and not one.switch and not isinstance(default, bool) else ""
        flags = f"`{one.short}`, " * bool(one.short) + f"`{one.flag}{takes}`"
        place = list(HelpGroup).index(one.group)
        cells = (str(one.group), flags.replace("|", "\\|"), help_of(one), shown)
        found.append((place, *cells))
    return found


def _conflicts(group: type) -> str:
    """The conflicts of a group as a list, those with the same reason in one line."""
    from tvm_serenity.options.schema import conflicts

    by_reason: dict[tuple[str, str], list[str]] = {}
    for other, one, why in conflicts(group):
        by_reason.setdefault((one, why), []).append(other)
    lines = [f"* {one} with {', '.join(others)}: {why}" for (one, why), others in by_reason.items()]
    return "".join(f"{line}\n" for line in lines)


def build_conflicts() -> str:
    """Return what options of ``serenity build`` do not go together, as a Markdown list."""
    from tvm_serenity.firmware.settings import Settings

    return _conflicts(Settings)


def schemas() -> dict[str, Any]:
    """Return the JSON Schema of the options that each command's function takes."""
    from tvm_serenity.options.output import Shown
    from tvm_serenity.options.schema import schema

    return {
        name: schema(group)
        for name, groups in commands().items()
        for group in groups
        if not issubclass(group, Shown)
    }


def on_page_markdown(markdown: str, **_: Any) -> str:
    """MkDocs' hook: put the tables where they are asked for."""
    if MARK in markdown:
        markdown = markdown.replace(MARK, options())
    if BUILD_MARK in markdown:
        markdown = markdown.replace(BUILD_MARK, build_conflicts())
    return markdown


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """MkDocs' hook: add the schemas as a file beside the page."""
    from mkdocs.structure.files import File

    text = json.dumps(schemas(), indent=2)
    files.append(File.generated(config, "reference/options.schema.json", content=text))
    return files

"""``wcet-probe list`` and ``wcet-probe show``: what there is, by name."""

# ruff: noqa: PLC0415  (the catalog and the renderers are imported by the command that needs them)

from __future__ import annotations

import click

from wcet_probe.cli import streams
from wcet_probe.errors import UsageError, unknown_name

_KINDS = {"allocators": "allocator", "scenarios": "scenario", "targets": "target", "workloads": "workload"}


@click.command("list")
@click.argument("kind", metavar="allocators|scenarios|targets|workloads")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array of objects with their name.")
def list_names(*, kind: str, as_json: bool) -> None:
    """List the names of what there is."""
    if kind not in _KINDS:
        raise unknown_name("kind", kind, _KINDS)
    entries = _entries(kind)
    if as_json:
        streams.print_json(entries)
    else:
        from wcet_probe.reports.screens.terminal import render_table

        render_table((), [tuple(entry.values())[:2] for entry in entries], streams.result_console())


@click.command()
@click.argument("words", nargs=-1, metavar="[allocator|scenario|target] NAME")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def show(*, words: tuple[str, ...], as_json: bool) -> None:
    """Show an allocator, a scenario or a target in full.

    Parameters and claims of an allocator; every number of a target with its source and basis.
    """
    kind, name = _kind_and_name(words)
    page = {"allocator": _show_allocator, "scenario": _show_scenario, "target": _show_target}[kind]
    page(name, as_json=as_json)


def _entries(kind: str) -> list[dict[str, object]]:
    from wcet_probe.catalog.lookup import (
        allocator_names,
        configured_names,
        load_allocator,
        load_target,
        target_names,
    )
    from wcet_probe.scenarios.lookup import describe

    if kind == "allocators":
        allocators = map(load_allocator, (*allocator_names(), *configured_names()))
        return [{"name": found.name, "title": found.title, "summary": found.summary} for found in allocators]
    if kind == "targets":
        targets = map(load_target, target_names())
        return [{"name": found.name, "title": found.title, "isa": found.isa.value} for found in targets]
    if kind == "workloads":
        from wcet_probe.scenarios.workloads.named import WORKLOADS

        return [{"name": found.name, "source": found.source} for found in WORKLOADS.values()]
    return [
        {"name": name, "description": describe(name), "allocators": allocators}
        for name, allocators in _scenarios().items()
    ]


def _scenarios() -> dict[str, list[str]]:
    """The allocators that offer each scenario."""
    from wcet_probe.catalog.lookup import allocator_names
    from wcet_probe.scenarios.lookup import scenario_names

    offered: dict[str, list[str]] = {}
    for allocator in allocator_names():
        for scenario in scenario_names(allocator):
            offered.setdefault(scenario, []).append(allocator)
    return offered


def _kind_and_name(words: tuple[str, ...]) -> tuple[str, str]:
    from wcet_probe.catalog.lookup import allocator_names, configured_names, is_path, target_names

    if not 1 <= len(words) <= 2:
        raise UsageError("show needs one name, of an allocator, a scenario or a target: see wcet-probe show --help.")
    own = (*configured_names(), *(word for word in words[-1:] if is_path(word)))
    names = {"allocator": (*allocator_names(), *own), "target": target_names(), "scenario": tuple(_scenarios())}
    *kinds, name = words
    for kind in kinds:
        if kind not in names:
            raise unknown_name("kind", kind, names)
    for kind in kinds or names:
        if name in names[kind]:
            return kind, name
    known = [known for kind in kinds or names for known in names[kind]]
    raise unknown_name(kinds[0] if kinds else "name", name, known)


def _show_allocator(name: str, *, as_json: bool) -> None:
    from wcet_probe.catalog.lookup import load_allocator
    from wcet_probe.reports.formats.document import allocator_document
    from wcet_probe.reports.screens.terminal import render_allocator

    allocator = load_allocator(name)
    if as_json:
        streams.print_json(allocator_document(allocator))
    else:
        render_allocator(allocator, streams.result_console())


def _show_target(name: str, *, as_json: bool) -> None:
    from wcet_probe.catalog.lookup import load_target
    from wcet_probe.reports.formats.document import target_document
    from wcet_probe.reports.screens.target_page import render_target

    target = load_target(name)
    if as_json:
        streams.print_json(target_document(target))
    else:
        render_target(target, streams.result_console())


def _show_scenario(name: str, *, as_json: bool) -> None:
    from wcet_probe.reports.formats.document import scenario_document
    from wcet_probe.reports.screens.terminal import render_scenario
    from wcet_probe.scenarios.lookup import describe

    allocators = _scenarios()[name]
    if as_json:
        streams.print_json(scenario_document(name, describe(name), allocators))
    else:
        render_scenario(name, describe(name), allocators, streams.result_console())

"""Budgets: which bounds a project wants checked, and how large they may be.

The tables ``[[budgets]]`` of the configuration, one for each operation of an allocator or function of a firmware.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from wcet_probe.config import Config
from wcet_probe.errors import UsageError, unknown_name
from wcet_probe.sizes import format_size, parse_size

OPERATIONS = ("malloc", "free")
_COMMON_KEYS = (
    "name", "target", "parameters", "caches", "max_instructions", "max_cycles", "tolerance_percent",
)  # fmt: skip
_ALLOCATOR_KEYS = ("allocator", "operation", "heap", "preset")
_FIRMWARE_KEYS = ("image", "entry", "facts", "sources")


@dataclass(frozen=True, slots=True)
class AllocatorCall:
    """An operation, ``malloc`` or ``free``, of a packaged allocator with a heap of ``heap_bytes``."""

    allocator: str
    operation: str
    heap_bytes: int
    preset: str | None = None


@dataclass(frozen=True, slots=True)
class FirmwareCall:
    """The function ``entry`` of the ELF file ``image``, with its files of flow facts and folders of sources."""

    image: Path
    entry: str
    facts: tuple[Path, ...]
    sources: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Budget:
    """An entry of the configuration.

    Attributes:
        name: unique among the entries of its target.
        target: name of the core.
        call: what is bounded.
        parameters: build parameters of the allocator, or values of what the firmware's flow facts speak of.
        caches: changes of the target's caches, as the option ``--cache`` has them.
        max_instructions, max_cycles: the proved bound may not be above them; None for no limit.
        tolerance_percent: how far the bound may be above that of a baseline, in per cent of it.
    """

    name: str
    target: str
    call: AllocatorCall | FirmwareCall
    parameters: Mapping[str, int]
    caches: tuple[str, ...] = ()
    max_instructions: int | None = None
    max_cycles: int | None = None
    tolerance_percent: Fraction = Fraction(0)

    def limit(self, unit: str) -> int | None:
        """The largest bound allowed in ``unit``, ``instructions`` or ``cycles``; None for any."""
        return self.max_instructions if unit == "instructions" else self.max_cycles


def read_budgets(config: Config) -> tuple[Budget, ...]:
    """The entries of ``config``, in its order; paths are taken relative to its file.

    Raises:
        UsageError: there is no entry, or one has an unknown key, a bad value, or the name of another.
    """
    file = config.file
    if file is None or not config.budgets:
        place = f"{file} has" if file else "no wcet-probe.toml or pyproject.toml from here upwards has"
        raise UsageError(f"{place} no budgets; add a table [[budgets]] for each bound that is to be checked.")
    folder = Path(os.path.relpath(file.parent))  # it comes back as the place of a fact: nothing of this machine in it
    budgets: list[Budget] = []
    for number, table in enumerate(config.budgets, 1):
        budget = _budget(_Table(table, f"{file}: budgets, entry {number}"), config, folder)
        if any((one.target, one.name) == (budget.target, budget.name) for one in budgets):
            raise UsageError(f"{file}: two budgets are named {budget.name!r} on {budget.target}; give one a name.")
        budgets.append(budget)
    return tuple(budgets)


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of the configuration; each method gives the value of a key, or says where it is wrong."""

    values: Mapping[str, object]
    where: str

    def wrong(self, key: str, wanted: str) -> UsageError:
        return UsageError(f"{self.where}: {key} must be {wanted}, not {self.values.get(key)!r}.")

    def text(self, key: str) -> str | None:
        value = self.values.get(key)
        if value is None or (isinstance(value, str) and value):
            return value
        raise self.wrong(key, "a text in quotation marks")

    def needed(self, key: str, example: str) -> str:
        if value := self.text(key):
            return value
        raise UsageError(f"{self.where}: {key} is missing; add one, such as {key} = {example}.")

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.values.get(key, [])
        listed = [value] if isinstance(value, str) else value
        if isinstance(listed, list) and all(isinstance(item, str) and item for item in listed):
            return tuple(listed)
        raise self.wrong(key, "a text or a list of texts in quotation marks")

    def count(self, key: str) -> int | None:
        value = self.values.get(key)
        if value is None or (type(value) is int and value >= 0):
            return value
        raise self.wrong(key, "a whole number of at least 0")

    def percent(self, key: str) -> Fraction:
        value = self.values.get(key, 0)
        if type(value) in {int, float} and 0 <= float(str(value)) < float("inf"):
            return Fraction(str(value))  # of the digits as written: 2.1 is not the float's 2.1000000000000000888
        raise self.wrong(key, "a number of at least 0")

    def numbers(self, key: str) -> Mapping[str, int]:
        value = self.values.get(key, {})
        if isinstance(value, dict) and all(type(item) is int for item in value.values()):
            return value
        raise self.wrong(key, "a table of whole numbers, such as { N = 64 }")

    def size(self, key: str) -> int | None:
        value = self.values.get(key)
        if value is None:
            return None
        if type(value) not in {int, str}:
            raise self.wrong(key, 'a size, such as "64KiB"')
        try:
            return parse_size(str(value))
        except UsageError as error:
            raise UsageError(f"{self.where}: {key}: {error}") from error


def _budget(table: _Table, config: Config, folder: Path) -> Budget:
    of_allocator, of_firmware = "allocator" in table.values, "image" in table.values
    if of_allocator == of_firmware:
        found = "both" if of_allocator else "neither"
        raise UsageError(f"{table.where} has {found} of allocator and image; name one of them.")
    known = (*(_ALLOCATOR_KEYS if of_allocator else _FIRMWARE_KEYS), *_COMMON_KEYS)
    for key in table.values:
        if key not in known:
            raise unknown_name(f"key in {table.where}:", key, known)
    parameters, caches = table.numbers("parameters"), table.texts("caches")
    call = _allocator_call(table, config) if of_allocator else _firmware_call(table, folder)
    return Budget(
        name=table.text("name") or _name(call, parameters, caches),
        target=config.target if config.target and "target" not in table.values else table.needed("target", '"mpc603e"'),
        call=call,
        parameters=parameters,
        caches=caches,
        max_instructions=table.count("max_instructions"),
        max_cycles=table.count("max_cycles"),
        tolerance_percent=table.percent("tolerance_percent"),
    )


def _allocator_call(table: _Table, config: Config) -> AllocatorCall:
    operation = table.needed("operation", '"malloc"')
    if operation not in OPERATIONS:
        raise unknown_name(f"operation in {table.where}:", operation, OPERATIONS)
    heap_bytes = table.size("heap") or config.heap_bytes
    if heap_bytes is None:
        raise UsageError(f'{table.where}: heap is missing; add one, such as heap = "64KiB".')
    return AllocatorCall(table.needed("allocator", '"tlsf"'), operation, heap_bytes, table.text("preset"))


def _firmware_call(table: _Table, folder: Path) -> FirmwareCall:
    image = folder / table.needed("image", '"build/fw.elf"')
    return FirmwareCall(
        image=image,
        entry=table.needed("entry", '"control_step"'),
        facts=tuple(folder / name for name in table.texts("facts")),
        sources=tuple(folder / name for name in table.texts("sources")) or (image.parent, folder),
    )


def _name(call: AllocatorCall | FirmwareCall, parameters: Mapping[str, int], caches: tuple[str, ...]) -> str:
    """What an entry is called that has no name: all that sets it apart from others on its target."""
    values = [f"{key}={value}" for key, value in sorted(parameters.items())]
    if isinstance(call, AllocatorCall):
        head = f"{call.allocator} {call.operation}, heap {format_size(call.heap_bytes)}"
        return ", ".join([head, *([call.preset] if call.preset else []), *values, *caches])
    return ", ".join([f"{call.entry} in {call.image.name}", *values, *caches])

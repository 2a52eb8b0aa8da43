"""Module certificates held against their binary: what the checker needs is gathered here, as for a bound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wcet_probe.build.image import read_image
from wcet_probe.build.linked_program import holds_program
from wcet_probe.build.program import Program
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.certificate.facts.findings import Finding
from wcet_probe.certificate.kernel.records import demand
from wcet_probe.certificate.modules.module import check_module
from wcet_probe.evidence.checking import allocator_binary
from wcet_probe.isa.decode import decode
from wcet_probe.isa.timing import costs, with_timing_problems


def check_module_document(document: Mapping[str, Any], elf: bytes) -> tuple[Finding, ...]:
    """Check the module certificate ``document``, which is valid by its schema, against the binary ``elf``.

    Raises:
        VerificationError: something does not hold.
        UsageError: there is no such allocator or target.
    """
    allocator = load_allocator(document["allocator"], document["parameters"])
    target = load_target(document["target"])
    demand(holds_program(elf, allocator), "the image has not the linked program that the allocator's manifest names")
    stated = document["image"]
    image = read_image(elf, target.isa, stated["compiler"], tuple(stated["flags"]))
    instructions = with_timing_problems(decode(image), target)
    program = Program(allocator, target, image, instructions, costs(instructions, target))
    return check_module(document, allocator_binary(program, document["heap_bytes"])).findings

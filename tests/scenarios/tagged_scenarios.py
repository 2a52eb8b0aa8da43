"""What the tests of the scenarios of first-fit, best-fit and half-fit share."""

from __future__ import annotations

from tests.scenarios import reports
from tests.support import guest_on, images_dir
from wcet_probe.build.compilation import build_image
from wcet_probe.build.toolchain import PACKAGED
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.model.report import Report
from wcet_probe.scenarios.families import HeapRequest
from wcet_probe.scenarios.lookup import family


def report(
    name: str, scenario: str, target_name: str = "cortex-m4", heap_bytes: int = 4096, values: reports.Values = ()
) -> Report:
    """The probe's answer; it has proved the predicted state on the guest's heap."""
    return reports.report(name, target_name, scenario, heap_bytes, values)


def instructions(name: str, scenario: str, target_name: str = "cortex-m4", heap_bytes: int = 4096) -> int:
    return report(name, scenario, target_name, heap_bytes).measurement.instructions


def dearest_of_random_replay(name: str, target_name: str, heap_bytes: int, seed: int) -> dict[int, int]:
    """Most instructions of any malloc (0) and free (1) in a random workload."""
    allocator, target = load_allocator(name), load_target(target_name)
    (plan,) = family(name).builders["random"](HeapRequest(allocator, heap_bytes, None, seed))
    guest = guest_on(build_image(allocator, target, PACKAGED, images_dir()), target)
    with guest.machine(heap_bytes) as machine:
        machine.call(allocator.entry_points["init"], machine.heap.base_address, heap_bytes)
        counts = machine.replay_counted(plan.trace)
    return {kind: max(n for k, n in zip(plan.trace.kinds, counts, strict=True) if k == kind) for kind in (0, 1)}

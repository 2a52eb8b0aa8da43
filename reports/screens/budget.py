"""Buckets for the sizes of a trace in a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from wcet_probe.answer.workloads.budgeting import Budget, Effect, Profile
from wcet_probe.reports.screens.layout import paragraph, table


def budget_lines(what: str, found: Profile, chosen: Budget, effect: Effect | None, width: int) -> Iterator[str]:
    """The lines of the screen."""
    yield f"{what}: buckets of exact sizes"
    rows = zip(found.sizes, found.most_live, chosen.buckets, strict=True)
    yield from table(
        [(f"{size:,} bytes", most, buckets) for size, most, buckets in rows], ("", "live at most", "buckets")
    )
    yield ""
    yield from paragraph(
        "In use",
        f"{chosen.most_used_bytes:,} bytes at most, {chosen.most_used_with_buckets_bytes:,} with the buckets, which "
        f"take {chosen.dedicated_bytes:,}",
        width,
    )
    parameters = " ".join(f"--param {name}={value}" for name, value in chosen.parameters.items())
    yield from paragraph("Build", f"budgeted:X {parameters}", width)
    if effect is not None:
        yield ""
        shown = (
            ("memory reached, bytes", effect.reached_bytes, effect.reached_with_buckets_bytes),
            ("instructions", effect.instructions, effect.instructions_with_buckets),
            ("code, bytes", effect.code_bytes, effect.code_with_buckets_bytes),
        )
        header = ("", effect.allocator, f"budgeted:{effect.allocator}")
        yield from table(shown, header)
        if effect.refused or effect.refused_with_buckets:
            refused = f"{effect.refused:,} allocations without buckets and {effect.refused_with_buckets:,} with them"
            yield from paragraph("Refused", f"{refused}: the heap is too small to compare", width)

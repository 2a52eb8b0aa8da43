"""The document ``wcet-probe-budget``: buckets for the sizes of a trace, and what they change."""

from __future__ import annotations

from wcet_probe import __version__
from wcet_probe.answer.workloads.budgeting import Budget, Effect, Profile
from wcet_probe.reports.formats.records import Document, plain


def budget_document(what: str, found: Profile, chosen: Budget, effect: Effect | None) -> Document:
    """The buckets that were chosen for the trace ``what``."""
    return {
        "format": "wcet-probe-budget",
        "version": 1,
        "tool": {"name": "wcet-probe", "version": __version__},
        "trace": what,
        "objects": [
            {"size_bytes": size, "most_live": most, "buckets": buckets}
            for size, most, buckets in zip(found.sizes, found.most_live, chosen.buckets, strict=True)
        ],
        "most_used_bytes": chosen.most_used_bytes,
        "most_used_with_buckets_bytes": chosen.most_used_with_buckets_bytes,
        "dedicated_bytes": chosen.dedicated_bytes,
        "choices_examined": chosen.examined,
        "choices": chosen.choices,
        "parameters": plain(chosen.parameters),
        "effect": plain(effect),
    }

"""What tests of the two engines have in common."""

from __future__ import annotations

import pytest

from wcet_probe.compiled import library


@pytest.fixture(autouse=True)
def _quickly_compiled(request, monkeypatch):
    """What is compared is the text; the campaigns compile it as the product does, which takes ten times as long."""
    if request.node.get_closest_marker("slow") is None:
        monkeypatch.setattr(library, "OPTIMISATION", ("-O0",))

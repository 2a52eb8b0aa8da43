"""Scenarios of djgpp-carve: the one slow call is the malloc that finds its bucket empty and carves a chunk."""

from __future__ import annotations

from wcet_probe.scenarios.djgpp.heap import Mechanism, family_of

FAMILY = family_of(Mechanism("djgpp_carve_control", carves=True))

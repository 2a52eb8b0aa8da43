"""Scenarios of djgpp-quarters: constant time, whatever the heap."""

from __future__ import annotations

from wcet_probe.scenarios.djgpp.heap import Mechanism, family_of

FAMILY = family_of(Mechanism("djgpp_quarters_control", quarters=True, gives_back=True))

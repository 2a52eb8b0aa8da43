"""The papers that are reproduced, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from wcet_probe.answer.papers.crespo import CRESPO
from wcet_probe.answer.papers.exhibit import Paper
from wcet_probe.answer.papers.herter import HERTER
from wcet_probe.answer.papers.lee import LEE
from wcet_probe.answer.papers.masmano import MASMANO
from wcet_probe.answer.papers.puaut import PUAUT

PAPERS: Mapping[str, Paper] = MappingProxyType({paper.name: paper for paper in (PUAUT, CRESPO, MASMANO, LEE, HERTER)})
"""What can be reproduced, by the name that the documentation gives a paper."""

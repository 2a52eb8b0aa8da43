"""The operations of an allocator prepared for proofs, each once: values, loops and caches are asked for by several."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from wcet_probe.analyzer.bound import prepare
from wcet_probe.analyzer.prepared import Prepared
from wcet_probe.answer.proving import operation_request
from wcet_probe.build.program import Program

Preparations = Callable[[str, int], Prepared]
"""What an operation is prepared for a size of the heap in bytes.

Raises:
    AnalysisError: it cannot be analysed.
    UsageError: a flow fact is wrong.
"""


def preparations(program: Program) -> Preparations:
    """Of the operations of ``program``; what was prepared before is given again."""

    @cache
    def prepared(role: str, heap_bytes: int) -> Prepared:
        return prepare(operation_request(program, role, heap_bytes))

    return prepared

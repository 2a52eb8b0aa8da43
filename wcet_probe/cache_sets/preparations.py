"""The operations of an allocator prepared for proofs, each once: values, loops and caches are asked for by several."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache

from wcet_probe.analyzer.bound import prepare
from wcet_probe.analyzer.prepared import Prepared
from wcet_probe.answer.bounds.proving import operation_request
from wcet_probe.build.program import Program

Preparations = Callable[[str, int], Prepared]
"""What an operation is prepared for a size of the heap in bytes.

Raises:
    AnalysisError: it cannot be analysed.
    UsageError: a flow fact is wrong.
"""
_HEAP = re.compile(r"\bH\b")
"""What flow facts know the size of the heap by (`answer.bounds.proving.fact_parameters`)."""


def preparations(program: Program) -> Preparations:
    """Of the operations of ``program``; what was prepared before is given again.

    *Soundness:* the size of the heap is a parameter of flow facts and of nothing else: where none of them names it,
    what is prepared for one size is so for all.
    """
    names_heap = any(_HEAP.search(text) for _, text in program.allocator.facts)

    @cache
    def prepared(role: str, heap_bytes: int) -> Prepared:
        return prepare(operation_request(program, role, heap_bytes))

    first_bytes: dict[str, int] = {}

    def given(role: str, heap_bytes: int) -> Prepared:
        if names_heap:
            return prepared(role, heap_bytes)
        found = prepared(role, first_bytes.setdefault(role, heap_bytes))
        return replace(found, request=operation_request(program, role, heap_bytes))

    return given

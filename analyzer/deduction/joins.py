"""Where the ways come together again into which a branch forks: its immediate post-dominator, by the code alone.

*Soundness:* nothing rests on it. What is claimed at a join is shown of each way to it, wherever it is; a way that
passes it by is followed to its end.

Words: post-dominator, symbolic execution (docs/explanation/glossary.md).
"""

from __future__ import annotations

from collections.abc import Iterable

from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.pcode.operations import PcodeOp
from wcet_probe.errors import DecodeError


def join_behind(lifter: Lifter, branch_address: int) -> int | None:
    """The first instruction that all ways from the branch on to a return execute behind it; None if there is none.

    Parameters:
        lifter: lifter of the image.
        branch_address: an instruction with two ways on.
    """
    successors = _successors(lifter, branch_address)
    behind = {one: frozenset(successors) for one in successors}
    # What control reaches later is looked at first: what is behind it is known then.
    backwards = sorted(successors.items(), reverse=True)
    is_changed = True
    while is_changed:
        is_changed = False
        for one, nexts in backwards:
            common = frozenset.intersection(*(behind[next_one] for next_one in nexts)) if nexts else frozenset()
            if behind[one] != common | {one}:
                behind[one] = common | {one}
                is_changed = True
    proper = behind[branch_address] - {branch_address}
    # The nearest one is behind no other, so that all the others are behind it.
    return next((one for one in sorted(proper) if behind[one] == proper), None)


def join_between_stores(lifter: Lifter, branch_address: int) -> int | None:
    """The join behind a branch; None if nothing is stored before it or nothing from there on: it parts nothing then.

    Parameters:
        lifter: lifter of the image.
        branch_address: of the branch.
    """
    join = join_behind(lifter, branch_address)
    if join is None:
        return None
    after = _successors(lifter, join).keys()
    before = _successors(lifter, branch_address).keys() - after
    return join if _has_store(lifter, before) and _has_store(lifter, after) else None


def _has_store(lifter: Lifter, addresses: Iterable[int]) -> bool:
    return any(op.opcode == "STORE" for one in addresses for op in _ops(lifter, one))


def _successors(lifter: Lifter, entry_address: int) -> dict[int, tuple[int, ...]]:
    """Where each instruction that is reached from ``entry_address`` leads to; none of a return, nor of what is none."""
    found: dict[int, tuple[int, ...]] = {}
    todo = [entry_address]
    while todo:
        address = todo.pop()
        if address not in found:
            found[address] = _behind(lifter, address)
            todo.extend(found[address])
    return found


def _behind(lifter: Lifter, address: int) -> tuple[int, ...]:
    try:
        instruction = lifter.lift(address)
    except DecodeError:
        return ()
    jumps = [op.inputs[0] for op in instruction.ops if op.opcode in {"BRANCH", "CBRANCH"}]
    targets = [one.offset for one in jumps if one.space != "const"]
    last = instruction.ops[-1].opcode if instruction.ops else ""
    if last not in {"BRANCH", "RETURN", "BRANCHIND"} or len(targets) < len(jumps):
        targets.append(address + instruction.size_bytes)
    return tuple(dict.fromkeys(targets))


def _ops(lifter: Lifter, address: int) -> tuple[PcodeOp, ...]:
    try:
        return tuple(lifter.lift(address).ops)
    except DecodeError:
        return ()

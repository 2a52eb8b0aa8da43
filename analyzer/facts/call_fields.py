"""Calls through members of structures: which indirect branch or call reads its target from which member.

A branch or call is bound to a member where two things agree: on the only way to it its target is loaded from as many
bytes behind a pointer as the debug information says that the member lies behind the start of its structure, and the
source has a call through a member of that name in the line that the line table gives to the load or the branch, and
no call there by other means: through a pointer that is no member, or in a macro. So is a call of a variable that the
line of the load sets to such a member: ``done = queue->done; unlock(); if (done) done(queue);``. Between the load and
the branch control may leave or call, and must not come in.

>>> def field_of(displacement, line, members):  # the line is the source's
...     return [name for name, offset in members if offset == displacement and f"->{name}(" in line]
>>> field_of(4, "err = lfs->cfg->read(lfs->cfg, block, off);", [("read", 4), ("prog", 8)])
['read']

Words: flow fact, line table, control-flow reconstruction (docs/explanation/glossary.md).

*Soundness:* the binding is a heuristic. What a fact says of a member is assumed of each of these branches, by its
place, which the assumption lists, and is held against the calls of runs. Of a branch that may be through either of
several members nothing is told unless facts speak of all of them. So it is of members of one name, wherever they lie:
how far behind a pointer one is depends on the element of an array, and on what else a compiler adds. And of GCC's code,
which has one call for two that end two ways, with the line of one, of all members that lie so far behind.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache

from wcet_probe.analyzer.facts.language import Facts, ThroughFact
from wcet_probe.build.compilers import functions_of_clang
from wcet_probe.build.debug_types import CodePointer, code_pointers
from wcet_probe.build.image import require_symbol
from wcet_probe.errors import UsageError, unknown_name
from wcet_probe.identity import Same
from wcet_probe.model.image import Image
from wcet_probe.model.instruction import AccessKind, Control, Instruction
from wcet_probe.model.proof import Assumption
from wcet_probe.model.target import Isa

_MOST_BEFORE = 64
"""Instructions before a branch among which the load of its target is looked for."""
_ALWAYS = 14
"""Condition field of instructions that are always executed (ARM ARM DDI 0406C, A8.3)."""
_RETURNS = frozenset({"r13", "r14", "lr"})
"""Registers that a branch reads which is a return."""
_KEYWORDS = frozenset({"if", "while", "for", "switch", "return", "sizeof"})
_BY_NAME = re.compile(r"(\w+)\s*\(")
_COMPUTED = re.compile(r"(?:[\])]|(?:->|\.)\s*\w+)\s*\(")
"""A call of what is an element, a member or in brackets; or a cast of what is in brackets."""
_DEFINED = re.compile(r"\b(\w+)(?=\s*\([^;{}]*\)\s*\{)")
_MACRO = re.compile(r"#[ \t]*define[ \t]+(\w+)(.*)")
_OTHER_NAME = re.compile(r"[ \t]+([A-Za-z_]\w*)\s*")
"""What a macro stands for that is another name only."""
_SET = re.compile(r"(?:\(\s*\*\s*(\w+)\s*\)\s*\([^;=]*\)|\b(\w+))\s*=(?!=)[^;=?]*(?:->|\.)\s*(\w+)\s*;")
"""A variable that is set to a member: ``v = p->m;``, ``void (*v)(int) = p->m;``."""
_KEPT_BY_CALLS: Mapping[Isa, frozenset[str]] = {
    Isa.ARM: frozenset(f"r{number}" for number in range(4, 12)),
    Isa.THUMB: frozenset(f"r{number}" for number in range(4, 12)),
    Isa.POWERPC: frozenset(f"r{number}" for number in range(14, 32)),
}
"""Registers that callees give back, by convention."""
CHECKED_CALLS = "every call that the second engine repeats"
"""How runs check what is said of targets."""


def targets_through_fields(
    facts: Facts, image: Image, instructions: Sequence[Instruction], sources: Mapping[str, str]
) -> dict[int, tuple[int, ...]]:
    """Targets of indirect branches and calls by what ``facts`` say of members, by the address of the instruction.

    Raises:
        UsageError: there is no such member, or no call through it is found.
        ImageError: there is no such target, or the debug information is damaged.

    *Soundness:* as said of the module.
    """
    told: dict[str, set[int]] = {}
    for fact in facts.through:
        told.setdefault(_member(fact, image), set()).update(require_symbol(image, one).address for one in fact.targets)
    if not told:
        return {}
    sites = field_sites(image, instructions, sources)
    for fact in facts.through:
        if not _sites_of(fact, image, sites):
            raise UsageError(
                f"{fact.where}: [[calls]] key through: no call is seen to read its target from {fact.through}: name "
                "the calls by function and offset, and let --source lead to the sources."
            )
    return {
        site: tuple(sorted({target for member in members for target in told[member]}))
        for site, members in sites.items()
        if told.keys() >= set(members)
    }


def field_sites(
    image: Image, instructions: Sequence[Instruction], sources: Mapping[str, str]
) -> Mapping[int, tuple[str, ...]]:
    """The members that indirect branches and calls of the image may read their targets from, by address.

    Raises:
        ImageError: the debug information is damaged.

    *Soundness:* as said of the module.
    """
    return _field_sites(Same(image), Same(instructions), Same(sources))


@lru_cache(maxsize=4)
def _field_sites(
    image: Same[Image], instructions: Same[Sequence[Instruction]], sources: Same[Mapping[str, str]]
) -> Mapping[int, tuple[str, ...]]:
    by_offset: dict[int, list[CodePointer]] = {}
    pointers = tuple(code_pointers(image.value))
    for one in pointers:
        by_offset.setdefault(one.offset, []).append(one)
    found: dict[int, tuple[str, ...]] = {}
    if not by_offset:
        return found
    joins = {one.branch_target for one in instructions.value}
    macros = _macros(sources.value)
    known = frozenset(one.name for one in pointers)
    names = known - _macros(sources.value, known)
    called = {name for name in names if any(_calls_through(text, name) for text in sources.value.values())}
    functions, of_clang = _functions(image.value, sources.value) - macros, functions_of_clang(image.value)
    for index, branch in enumerate(instructions.value):
        load = _load_of_target(instructions.value, index, joins, _KEPT_BY_CALLS[image.value.isa])
        if load is None:
            continue
        (access,) = load.accesses
        line, loaded = (_line(image.value, sources.value, one.address) for one in (branch, load))
        lines = [each for each in (_with_members(line, loaded), _SET.sub("", loaded)) if each.strip()]
        there = by_offset.get(access.displacement, ())
        own = {one.name for one in there if one.name in names and any(_calls_through(each, one.name) for each in lines)}
        if not own or any(_has_other_calls(line, names, functions) for line in lines):
            continue
        function = image.value.function_at(branch.address)
        shared = set() if function is not None and function.address in of_clang else {*there}
        members = {one.member for one in pointers if one.name in own or (one in shared and one.name in called)}
        found[branch.address] = tuple(sorted(members))
    return found


def _member(fact: ThroughFact, image: Image) -> str:
    """The member that ``fact`` is about, by the innermost structure that it is in."""
    known = {name: one.member for one in code_pointers(image) for name in (one.path, one.member)}
    if not known:
        raise UsageError(
            f"{fact.where}: [[calls]] key through: the debug information tells of no structure with a pointer to a "
            "function; compile with -g, or name the calls by function and offset."
        )
    if fact.through not in known:
        problem = unknown_name("pointer to a function in a structure", fact.through, known)
        raise UsageError(f"{fact.where}: [[calls]] key through: {problem}")
    return known[fact.through]


def _sites_of(fact: ThroughFact, image: Image, sites: Mapping[int, Sequence[str]]) -> tuple[int, ...]:
    member = _member(fact, image)
    return tuple(site for site, members in sites.items() if member in members)


def _load_of_target(
    instructions: Sequence[Instruction], index: int, joins: set[int | None], kept: Collection[str]
) -> Instruction | None:
    """The load of where an indirect branch or call goes to: in its block, or before it on the only way to it."""
    branch, found = instructions[index], None
    wanted = branch.reads - {"r15"}
    if branch.branch_target is not None or branch.control not in {Control.CALL, Control.INDIRECT}:
        return None
    if branch.accesses:
        found = branch
    elif wanted.isdisjoint(_RETURNS) and len(wanted) == 1:
        for before in reversed(instructions[max(0, index - _MOST_BEFORE) : index]):
            following = before.address + before.size_bytes
            if not _goes_on(before, wanted, kept) or following in joins or following > branch.address:
                break
            if wanted & before.writes and before.control is not Control.INDIRECT:
                found = before if wanted <= before.loaded else None
                if before.accesses or len(before.reads) != 1:
                    break
                wanted = before.reads  # a copy, as to the counter register of PowerPC
    return found if found is not None and _is_of_member(found) else None


def _goes_on(before: Instruction, wanted: frozenset[str], kept: Collection[str]) -> bool:
    """Whether control may go on behind ``before`` and finds in ``wanted`` what was there, but for what it writes."""
    if before.control is Control.CALL:
        return wanted <= set(kept)
    if before.control is Control.INDIRECT:  # a return where a test fails
        return before.in_it_block or before.condition != _ALWAYS
    return before.control in {Control.NEXT, Control.CONDITIONAL_BRANCH}


def _is_of_member(load: Instruction) -> bool:
    """Whether it loads one word from a constant distance behind a register that is not the stack pointer."""
    if len(load.accesses) != 1:
        return False
    (access,) = load.accesses
    is_word = access.kind is AccessKind.LOAD and access.bytes_each == 4 and access.count == 1
    return is_word and access.index is None and access.base not in {None, "r13"} and not load.literal


def _line(image: Image, sources: Mapping[str, str], address: int) -> str:
    """The source's line of an instruction; empty where it is not known."""
    place = image.lines.find(address)
    if place is None or place[0] not in sources:
        return ""
    lines = sources[place[0]].splitlines()
    return lines[place[1] - 1] if place[1] <= len(lines) else ""


@lru_cache(maxsize=1 << 10)
def _called(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?:->|\.)\s*{re.escape(name)}\s*(?:\[[^\]]*\]\s*)*\)?\s*\(")


def _calls_through(line: str, name: str) -> bool:
    """Whether ``line`` has a call through a member ``name``: ``p->name(…)``, ``s.name[i](…)``, ``(*p->name)(…)``."""
    return _called(name).search(line) is not None


def _with_members(line: str, loaded: str) -> str:
    """``line`` with the member in place of each variable that it calls and ``loaded`` sets."""
    for in_brackets, by_name, member in _SET.findall(loaded):
        variable = re.escape(in_brackets or by_name)
        line = re.sub(rf"(?<![\w.>])(?:\(\s*\*?\s*{variable}\s*\)|{variable})\s*\(", f"_->{member}(", line)
    return line


def _functions(image: Image, sources: Mapping[str, str]) -> frozenset[str]:
    """Names of functions: of the image, and those that the sources define, which may be expanded everywhere."""
    defined = {one for text in sources.values() for one in _DEFINED.findall(text)}
    return frozenset({name for name, one in image.symbols.items() if one.is_function} | defined)


def _macros(sources: Mapping[str, str], members: Collection[str] | None = None) -> frozenset[str]:
    """Names of macros; with ``members``, without those that stand for another name which is none of them.

    Where such a macro is in force, what is called behind a pointer is no pointer to a function by the debug
    information, and code of that line has another one: a kernel's own files see ``q->done`` as it is, and its users
    a function of that name.
    """
    found = {one for text in sources.values() for one in _MACRO.findall(text)}
    if members is None:
        return frozenset(name for name, _ in found)
    other = {pair: one[1] for pair in found if (one := _OTHER_NAME.fullmatch(pair[1]))}
    return frozenset(pair[0] for pair in found if pair not in other or other[pair] in members)


def _has_other_calls(line: str, names: Collection[str], functions: Collection[str]) -> bool:
    """Whether ``line`` may call by other means than members called ``names``, and ``functions`` by their own names.

    A pointer that is no member of a structure, or what a macro calls, may be loaded from as far behind another pointer.
    """
    for name in names:
        line = _called(name).sub(" + (", line)
    is_computed = _COMPUTED.search(line) is not None
    return is_computed or not {*_BY_NAME.findall(line)} <= {*functions, *_KEYWORDS}


def through_assumptions(
    facts: Facts,
    image: Image,
    instructions: Sequence[Instruction],
    sources: Mapping[str, str],
    functions: Collection[str],
) -> Iterator[Assumption]:
    """What facts about members take as given, of all branches and calls that they are bound to.

    Args:
        facts: of the image.
        image: the binary.
        instructions: its code.
        sources: texts by file name, as the line table calls the files.
        functions: those that are analysed; a fact that is bound to nothing in them is left out.

    Raises:
        UsageError, ImageError: as `targets_through_fields`.

    *Soundness:* each branch and call is listed, those in other functions too.
    """
    sites = field_sites(image, instructions, sources) if facts.through else {}
    for fact in facts.through:
        own = _sites_of(fact, image, sites)
        if any((function := image.function_at(site)) and function.name in functions for site in own):
            places = ", ".join(map(image.location, own))
            text = f"calls through {fact.through}, which are those at {places}, go only to {', '.join(fact.targets)}"
            yield Assumption(f"fact {fact.where}", f"{text}: {fact.because}", CHECKED_CALLS)

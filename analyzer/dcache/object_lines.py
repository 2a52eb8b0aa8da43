"""Objects whose lines are counted: how often accesses miss that go to few lines, in whatever order.

A list's node has another address in each round of a loop, so no name tells that a second walk meets the same nodes.
Where a fact says to how many lines the accesses of some code go, and to how many in one cache set, names are not
needed: if all the lines that the call may access in a set fit in it together, none of them is evicted by another, and
each misses once at most. Allocators that are told the set of a block make such facts true: J. Herter et al., CAMA: a
predictable cache-aware memory allocator, ECRTS 2011, section V.B.

Words: asserted, line (docs/explanation/glossary.md).

*Soundness:* a set is left alone between accesses of the call, and at most as many lines of it are accessed in the call
as `_ways` says. Policies that `cache_sets.effective_ways` compares with an LRU set: that set never evicts
what was filled in the call, and is within the real one. First-in first-out: between two fills of a line there are as
many fills of others as ways; of the first line to be filled twice, these are all different, and so are more than there
are.

A fact says that all accesses of the loop are to two lines, one a set, as where descriptors lie in known sets. They miss
twice at most, however long the list is:

>>> objects = Objects("facts:1", lines=2, lines_per_set=1)
>>> for one in object_constraints({objects: {3: 1, 4: 2}}):
...     print(one.name, one.points, one.constant, one.auxiliaries)
miss:objects:0:executed ((3, -1), (4, -2)) 0 (('miss:objects:0', 1),)
miss:objects:0:most () 2 (('miss:objects:0', 1),)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from wcet_probe.analyzer.dcache.symbolic_blocks import ReferenceGroup, SymbolicBlock, SymbolicBlocks
from wcet_probe.analyzer.domains.cache_sets import effective_ways
from wcet_probe.analyzer.facts.memory import Objects
from wcet_probe.analyzer.ipet.flow_problem import LinearConstraint
from wcet_probe.analyzer.values.execution.accesses import Access
from wcet_probe.model.target import CacheConfig, Replacement


def counted_objects(
    accesses: Iterable[tuple[SymbolicBlock | None, Access | None]],
    lines: SymbolicBlocks,
    config: CacheConfig,
    is_one_address: Callable[[ReferenceGroup], bool],
) -> Mapping[Access, Objects]:
    """The objects whose lines miss once at most, by the accesses to them.

    Args:
        accesses: all of the call, with their lines as far as they have a name; a fetch is none but a line.
        lines: names of the lines.
        config: the cache.
        is_one_address: whether the variable part of a group has one value in the whole call.

    *Soundness:* as said of the module; of each set all lines are counted that may be accessed in it. What is neither
    counted by a fact nor known to be one line of a set makes the set useless.
    """
    found: dict[Access, tuple[Objects, frozenset[int]]] = {}
    numbers: set[int] = set()
    groups: set[int] = set()
    uncounted: set[int] = set()
    every = frozenset(range(config.sets))
    for line, access in accesses:
        objects = lines.places.objects_of(access) if access else None
        sets = lines.places.sets_of(access) if access else None
        group = lines.groups[line.group] if line else None
        if objects and access:
            found[access] = objects, every if sets is None else sets
        elif line and group and group.numbers is not None:
            numbers |= group.numbers
        elif line and group and is_one_address(group):
            groups.add(line.group)
        else:
            uncounted |= every if sets is None else sets
    allocated = Counter(number % config.sets for number in numbers)
    for number in groups:
        sets = lines.groups[number].sets
        allocated.update(every if sets is None else sets)
    for objects, sets in dict.fromkeys(found.values()):
        allocated.update(dict.fromkeys(sets, objects.lines_per_set))
    free = frozenset(one for one in every - uncounted if allocated[one] <= _ways(config))
    return {access: objects for access, (objects, sets) in found.items() if sets <= free}


def object_constraints(misses: Mapping[Objects, Mapping[int, int]]) -> Iterator[LinearConstraint]:
    """Constraints of the misses of counted objects, an auxiliary variable for each of ``misses``.

    Args:
        misses: how often an execution of a point may miss on the objects.

    *Soundness:* one miss for each line, and none but of an access.
    """
    for number, (objects, points) in enumerate(sorted(misses.items(), key=lambda item: item[0].where)):
        yield from counted_constraints(f"miss:objects:{number}", points, objects.lines)


def counted_constraints(name: str, points: Mapping[int, int], most: int) -> Iterator[LinearConstraint]:
    """Constraints of an auxiliary variable: ``most``, and how often executions of ``points`` may bring it."""
    executed = tuple((point, -count) for point, count in sorted(points.items()))
    yield LinearConstraint(f"{name}:executed", executed, auxiliaries=((name, 1),))
    yield LinearConstraint(f"{name}:most", constant=most, auxiliaries=((name, 1),))


def _ways(config: CacheConfig) -> int:
    """Lines of a set that stay in it together, once they were accessed in the call."""
    return config.ways if config.replacement is Replacement.FIFO else effective_ways(config).must

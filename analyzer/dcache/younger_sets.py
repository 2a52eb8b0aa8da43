"""Must and persistence analysis of symbolic cache blocks, by their younger sets.

Of each line that was accessed it is known which reference groups (`symbolic_blocks`) may have been accessed
since, in its set. As two lines of a group are never in one set, its age is at most the number of those groups; an
access to a line without a name, and each value that a name stood for before, count as one more, unless the lines have
another name from then on.

Two bounds are kept: one of lines that were surely accessed (*must*: those younger than the ways hit), and one that
holds if the line was accessed in the *scope*, that is since its group's symbols got their values (*persistence*, see
`analyzer.icache.persistence`). What `cache_sets.effective_ways` says of policies other than LRU applies to both.
First-in first-out has more to say of persistence: only fills count there, and hits save nothing. Where no line is
evicted once it was accessed, but by accesses that are told (`footprints`), nothing ages, and those evict all.

Words: younger set, must analysis, persistence (docs/explanation/glossary.md).

*Soundness:* by induction over a path: an access ages each line that may share its set, and resets its own if it surely
takes place. A group is killed where a symbol of it may get another value. FIFO: while fewer groups than ways were
filled since a line was first accessed in the scope, it is evicted at most once in it, by fills for what came before the
scope; it was filled again then. Else the first line filled in the scope and evicted in it would have been so by as many
fills as there are ways, of different lines, as a line filled twice was evicted before.

In each round the first access to the node may miss. Those behind it hit, as nothing was accessed in between: the
younger set of the node's line is empty where their blocks begin.

>>> walk = example('''
... struct node { struct node *next; unsigned key, size; };
... unsigned f(struct node *n, unsigned count) {
...     unsigned sum = 0;
...     for (; count; count--) { sum += n->key; if (sum & 1) n->size = sum; n = n->next; }
...     return sum;
... }''')
>>> walk.verdicts()
['persistent', 'hit', 'hit']
>>> [[sorted(one.groups) for one in state.must.values()] for _, state in sorted(walk.analysis.states.items())]
[[], [], [], [], [[]], [[]]]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from wcet_probe.analyzer.dcache.symbolic_blocks import ReferenceGroup, SymbolicBlock, most_in_one_set
from wcet_probe.analyzer.domains.cache_sets import effective_ways
from wcet_probe.model.target import CacheConfig, Replacement


class LineAccess(NamedTuple):
    """An access of a block: to a line, or to one without a name; a miss fills it, or does not.

    Where it ``modifies``, the line is to be written back later if it is in the cache. ``candidates`` are the lines that
    it may be to, where all are known by number: of `SymbolicBlocks.candidate`. ``traversed`` is the name that outlives
    a round of the loop, if it belongs to a traversal. Where a cache ``keeps_all`` but for what some accesses evict,
    the sets are told in which they do. One that ``is_leaving`` takes place where its block is left for another than the
    next instruction, and only there.
    """

    line: SymbolicBlock | None
    fills: bool
    is_certain: bool
    candidates: tuple[SymbolicBlock, ...] = ()
    traversed: SymbolicBlock | None = None
    modifies: bool = False
    evicts: frozenset[int] = frozenset()
    is_leaving: bool = False


class YoungerSet(NamedTuple):
    """Groups, and other lines, that may have been accessed since a line was, and how many of all of them at most.

    Where paths have met there may be more of them than ``most``: then no path had all. On each there were no more lines
    in a set than that though one of each of the groups ``common`` is counted.
    Where ``is_assumed``, the line has that name only if its group's variable part is in the class that the group's
    accesses show, and none did yet.
    Of a line that must be in the cache it may be known that it is modified.
    """

    groups: frozenset[int]
    others: int
    most: int
    is_assumed: bool = False
    common: frozenset[int] = frozenset()
    is_modified: bool = False


class CacheState(NamedTuple):
    """What is known of lines: *must* of those in the cache, *scope* of those that were accessed in their scope.

    In *scope* None stands for a line that may have been evicted since; a line that is not in it was not accessed yet.
    """

    must: Mapping[SymbolicBlock, YoungerSet]
    scope: Mapping[SymbolicBlock, YoungerSet | None]


class Verdict(NamedTuple):
    """Of an access: it always hits; or it misses only if its line was not accessed before: in the scope, block or call.

    In the call: by whatever name that tells the number. In a traversal: by its accesses since the loop was entered.
    Of an access that does not fill: it misses only if no access by that name filled its line in the scope before.
    Its line is in the cache, and modified.
    """

    is_hit: bool
    is_persistent: bool
    is_persistent_in_block: bool
    is_persistent_in_call: bool
    is_persistent_in_traversal: bool
    is_kept: bool
    is_modified: bool


class Substitution(NamedTuple):
    """What an edge does to names: the groups ``killed`` mean other lines behind it.

    The lines that a group meant before are lines of its successor behind the edge.
    """

    killed: frozenset[int] = frozenset()
    successors: Mapping[int, int] = MappingProxyType({})


NOTHING = YoungerSet(frozenset(), 0, 0)
"""Of a line that was accessed just now."""
UNKNOWN = CacheState({}, {})


@dataclass(frozen=True, slots=True)
class RelationalCache:
    """The domain: groups and cache.

    Attributes:
        groups: by number.
        config: the cache.
        stand_ins: groups of the lines that a group's lines may be, where these are few (`SymbolicBlocks.stand_ins`).
        traversed: by the name of a traversal, the group whose accesses it consists of.
        keeps_all: whether no access evicts a line that was accessed before, but those that are said to.
        at: the set of lines of which that is known, whatever is known of their group.
        must_ways: ways of an LRU set whose content is always in the real one.
    """

    groups: Sequence[ReferenceGroup]
    config: CacheConfig
    stand_ins: Mapping[int, frozenset[int]] = field(default_factory=dict)
    traversed: Mapping[int, int] = field(default_factory=dict)
    keeps_all: bool = False
    at: Mapping[SymbolicBlock, int] = field(default_factory=dict)
    must_ways: int = field(init=False, compare=False)
    _meeting: dict[tuple[int, int], bool] = field(default_factory=dict, init=False, compare=False, repr=False)
    _most_in_a_set: dict[tuple[int, frozenset[int]], int] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        """Each access asks for it."""
        object.__setattr__(self, "must_ways", effective_ways(self.config).must)

    @property
    def scope_ways(self) -> int:
        """Groups that must have been accessed since before a line can be evicted in its scope."""
        return self.config.ways if self.config.replacement is Replacement.FIFO else self.must_ways

    def is_persistent(self, state: CacheState, access: LineAccess) -> bool:
        """Whether ``access`` misses only if its line was not accessed before in the scope.

        *Soundness:* as said of the module. Other granules may be in the same line: none of them may have been evicted.
        An access that does not fill is never persistent.
        """
        line = access.line
        if line is None or not access.fills:
            return False
        reach = -(-self.config.line_bytes // self.groups[line.group].alignment_bytes)
        return all(
            younger is not None
            for other, younger in state.scope.items()
            if other.group == line.group and abs(other.granule - line.granule) < reach
        )

    def is_persistent_in_call(self, state: CacheState, access: LineAccess) -> bool:
        """Whether ``access`` misses only if its line was not accessed before in the call, by one with candidates.

        *Soundness:* a line whose number is known has one scope, the call. It is kept as a line that may have been
        accessed from the first access on that it is a candidate of; none of those of ``access`` may have been evicted.
        """
        known = bool(access.candidates) and access.fills
        return known and all(state.scope.get(one, NOTHING) is not None for one in access.candidates)

    def is_persistent_in_traversal(self, state: CacheState, access: LineAccess) -> bool:
        """Whether ``access`` misses only on a line that its traversal is new to.

        *Soundness:* of the accesses of a traversal to one granule, that of a round is to the line of the one before, or
        to a line that none was to. What may be evicted after the one before, or with first-in first-out since the loop
        was entered, is recorded for the former; the latter misses once.
        """
        traversed = access.traversed
        return traversed is not None and access.fills and state.scope.get(traversed, NOTHING) is not None

    def is_kept(self, state: CacheState, access: LineAccess) -> bool:
        """Whether ``access``, which does not fill, misses only if its line was not filled in the scope before.

        Known with first-in first-out, and where the cache keeps all, by the accesses of the same name that fill.

        *Soundness:* with first-in first-out a line is evicted by the fills of as many other lines as there are ways, of
        each one: a line that was filled after it is not evicted before it. So many groups would have been accessed
        since the first access by that name.
        """
        line = access.line
        if line is None or access.fills or not (self.keeps_all or self.config.replacement is Replacement.FIFO):
            return False
        return state.scope.get(line, NOTHING) is not None

    def verdicts(self, state: CacheState, accesses: Iterable[LineAccess]) -> Iterable[Verdict]:
        """What is known of the accesses of a block, in order, at whose entry ``state`` holds.

        *Soundness:* as said of `is_persistent`; an execution of a block is a scope, too.
        """
        local = UNKNOWN
        for access in accesses:
            is_hit = access.line is not None and access.line in state.must
            yield Verdict(
                is_hit,
                self.is_persistent(state, access),
                self.is_persistent(local, access),
                self.is_persistent_in_call(state, access),
                self.is_persistent_in_traversal(state, access),
                self.is_kept(state, access),
                is_hit and access.line is not None and state.must[access.line].is_modified,
            )
            state, local = self.touch(state, access), self.touch(local, access)

    def touch(self, state: CacheState, access: LineAccess) -> CacheState:
        """The state behind ``access``.

        *Soundness:* as said of the module. Without write-allocate a store that misses changes nothing. A line that a
        store surely was to is modified as long as it is in the cache. What evicts may evict all lines of the sets that
        it may go to.
        """
        if self.keeps_all and access.evicts and self.ages(access):
            state = self._evicted(state, access.evicts)
        line = access.line
        known = state.must.get(line) if line is not None else None
        is_modified = (access.modifies and access.is_certain) or (known is not None and known.is_modified)
        if not self.ages(access):
            if line is None or known is None:
                return state
            return state._replace(must={**state.must, line: known._replace(is_modified=is_modified)})
        must = self.aged(state.must, access, self.must_ways)
        scope = self.aged(state.scope, access, self.scope_ways)
        for one in access.candidates:
            self._touch_scope(scope, access, one, is_certain=access.is_certain and len(access.candidates) == 1)
        if access.traversed is not None:
            self._touch_scope(scope, access, access.traversed, is_certain=access.is_certain)
        if line is not None:
            resident = {line: younger for line, younger in must.items() if younger is not None}
            if access.is_certain and (access.fills or known is not None):
                resident[line] = NOTHING._replace(is_modified=is_modified)
            self._touch_scope(scope, access, line, is_certain=access.is_certain, is_resident=line in state.must)
            return CacheState(resident, scope)
        return CacheState({line: younger for line, younger in must.items() if younger is not None}, scope)

    def _evicted(self, state: CacheState, sets: frozenset[int]) -> CacheState:
        """``state`` where all lines that may be in ``sets`` may have been evicted."""
        return CacheState(
            {line: younger for line, younger in state.must.items() if not self._may_be_in(line, sets)},
            {line: None if self._may_be_in(line, sets) else younger for line, younger in state.scope.items()},
        )

    def _may_be_in(self, line: SymbolicBlock, sets: frozenset[int]) -> bool:
        own = frozenset({self.at[line]}) if line in self.at else self.groups[line.group].sets
        return own is None or not own.isdisjoint(sets)

    def _touch_scope(
        self,
        scope: dict[SymbolicBlock, YoungerSet | None],
        access: LineAccess,
        line: SymbolicBlock,
        *,
        is_certain: bool,
        is_resident: bool = False,
    ) -> None:
        if access.fills:
            scope.setdefault(line, NOTHING)
        if self.config.replacement is Replacement.FIFO or not is_certain or line not in scope:
            return
        if access.fills or is_resident or scope[line] is not None:
            scope[line] = NOTHING

    def ages(self, access: LineAccess) -> bool:
        """Whether ``access`` may change what is known of other lines.

        *Soundness:* where only fills evict, stores that fill nothing do not; random replacement and one counter for the
        whole cache are an LRU set of one way.
        """
        return access.fills or self.config.replacement in {Replacement.LRU, Replacement.PLRU}

    def aged(
        self, lines: Mapping[SymbolicBlock, YoungerSet | None], access: LineAccess, ways: int
    ) -> dict[SymbolicBlock, YoungerSet | None]:
        """What is known of ``lines`` behind ``access``, in an LRU cache of so many ways.

        *Soundness:* as said of the module; that the line of ``access`` is the youngest then is left to the caller.
        """
        if self.keeps_all:
            return dict(lines)
        found: dict[SymbolicBlock, YoungerSet | None] = {}
        accessed = access.line
        for line, younger in lines.items():
            if younger is None or (accessed is not None and not self._may_age(line, accessed)):
                found[line] = younger
                continue
            if accessed is None:
                new = younger._replace(others=younger.others + 1, most=younger.most + 1)
            else:
                own = frozenset({accessed.group})
                most = younger.most + (accessed.group not in younger.common)
                new = younger._replace(groups=younger.groups | own, most=most, common=younger.common | own)
            found[line] = self._counted(line, new, ways)
        return found

    def _counted(self, line: SymbolicBlock, younger: YoungerSet, ways: int) -> YoungerSet | None:
        """``younger`` of ``line``, with no more lines than there can be; None where these are too many.

        *Soundness:* what may have been evicted is said to be, and there are no more others than lines: bounds do not
        grow for ever.
        """
        most = min(younger.most, self._most_younger(line.group, younger))
        return younger._replace(others=min(younger.others, most), most=most) if most < ways else None

    def _most_younger(self, group: int, younger: YoungerSet) -> int:
        """Most lines of ``younger`` that can be in one set, one that a line of ``group`` can be in."""
        key = group, younger.groups
        if key not in self._most_in_a_set:
            self._most_in_a_set[key] = most_in_one_set(self.groups[group], [self.groups[one] for one in younger.groups])
        return self._most_in_a_set[key] + younger.others

    def without(self, state: CacheState, substitution: Substitution) -> CacheState:
        """The state behind an edge, without new names.

        *Soundness:* in the set of another line, what a killed group stood for is one of its stand-ins, or a line of
        its successor, or counts as one line. What may have been evicted by now is left out, or said to be.
        """
        if not substitution.killed and not substitution.successors:
            return state
        must = {line: y for line, y in state.must.items() if line.group not in substitution.killed}
        return CacheState(self.resident(must, substitution), self.in_scope(state.scope, substitution, self.scope_ways))

    def in_scope(
        self, lines: Mapping[SymbolicBlock, YoungerSet | None], substitution: Substitution, ways: int
    ) -> dict[SymbolicBlock, YoungerSet | None]:
        """Those of ``lines`` that keep their names behind an edge, in an LRU cache of so many ways.

        *Soundness:* as said of `without`.
        """
        return {
            line: self.substituted(line, younger, substitution, ways)
            for line, younger in lines.items()
            if line.group not in substitution.killed
        }

    def resident(
        self, must: Mapping[SymbolicBlock, YoungerSet], substitution: Substitution
    ) -> Mapping[SymbolicBlock, YoungerSet]:
        """Of lines that must be in the cache before an edge, those that still must be, as far as can be told.

        *Soundness:* as said of `without`.
        """
        substituted = {
            line: self.substituted(line, younger, substitution, self.must_ways) for line, younger in must.items()
        }
        return {line: younger for line, younger in substituted.items() if younger is not None}

    def substituted(
        self, line: SymbolicBlock, younger: YoungerSet | None, substitution: Substitution, ways: int
    ) -> YoungerSet | None:
        """``younger`` of ``line`` with what the groups that it speaks of are behind an edge; None if they are too many.

        *Soundness:* as said of `without`.
        """
        if younger is None or self.keeps_all:
            return younger
        old = [one for one in younger.groups if one in substitution.killed or one in substitution.successors]
        if not old:
            return younger
        known = [found for found in (self._known(group, substitution) for group in old) if found]
        groups = younger.groups.difference(old).union(*known)
        others = younger.others + len(old) - len(known)
        # Where the successor may be in more sets, more of it and the others may be in one than were counted.
        moved = {
            substitution.successors[one]
            for one in younger.common
            if one in substitution.successors and self._is_as_wide(one, substitution.successors[one])
        }
        common = younger.common.difference(old).union(moved)
        return self._counted(line, younger._replace(groups=groups, others=others, common=common), ways)

    def _is_as_wide(self, group: int, successor: int) -> bool:
        one, other = self.groups[group], self.groups[successor]
        return (one.numbers, one.sets) == (other.numbers, other.sets)

    def _known(self, group: int, substitution: Substitution) -> frozenset[int]:
        """What the lines of a group count as behind an edge; nothing if they count as one line without a name."""
        if group in substitution.successors:
            return frozenset({substitution.successors[group]})
        return self.stand_ins.get(group, frozenset())

    def _may_age(self, line: SymbolicBlock, accessed: SymbolicBlock) -> bool:
        """Whether ``accessed`` may be another line of the set of ``line``."""
        if accessed.group in {line.group, self.traversed.get(line.group)}:
            return False
        pair = line.group, accessed.group
        if pair not in self._meeting:
            self._meeting[pair] = self.groups[line.group].may_meet(self.groups[accessed.group])
        return self._meeting[pair]


def join(a: CacheState, b: CacheState) -> CacheState:
    """The least state above two.

    *Soundness:* more groups and more others are larger bounds; a line must be held on both ways, and may have been
    accessed in its scope on either.
    """
    must = {line: larger(younger, b.must[line]) for line, younger in a.must.items() if line in b.must}
    return CacheState(must, united(a.scope, b.scope))


def united(
    a: Mapping[SymbolicBlock, YoungerSet | None], b: Mapping[SymbolicBlock, YoungerSet | None]
) -> dict[SymbolicBlock, YoungerSet | None]:
    """What holds of a line wherever it is known of it.

    *Soundness:* of a line that is in one of the two only, nothing is claimed where the other holds.
    """
    found = dict(a)
    for line, younger in b.items():
        known = found.get(line, younger)
        found[line] = None if younger is None or known is None else larger(younger, known)
    return found


def larger(a: YoungerSet, b: YoungerSet) -> YoungerSet:
    """What holds wherever ``a`` or ``b`` does.

    *Soundness:* of either the lines since, and those of its common groups, are ``most`` at most in a set; with further
    groups there may be one more for each.
    """
    if _covers(b, a):
        return b
    if _covers(a, b):
        return a
    most, either = max(a.most, b.most), a.common | b.common
    is_enough = all(one.most + len(either - one.common) <= most for one in (a, b))
    common = either if is_enough else a.common & b.common
    is_assumed, is_modified = a.is_assumed or b.is_assumed, a.is_modified and b.is_modified
    return YoungerSet(a.groups | b.groups, max(a.others, b.others), most, is_assumed, common, is_modified)


def _covers(wide: YoungerSet, narrow: YoungerSet) -> bool:
    """Whether ``wide`` holds wherever ``narrow`` does."""
    return (
        narrow.groups <= wide.groups
        and narrow.others <= wide.others
        and narrow.most + len(wide.common - narrow.common) <= wide.most
        and narrow.is_assumed <= wide.is_assumed
        and wide.is_modified <= narrow.is_modified
    )

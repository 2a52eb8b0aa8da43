"""Worst, best and random states of quick fit over pages.

An allocation is dear for one of two reasons, and never for both: a small request finds its list of fragments empty and
cuts a page, or a large one goes through all free runs of pages. Cutting needs one page, and the first free run has one:
it is never searched for. Which of the two is dearer depends on the heap's size. A deallocation is dear when it empties
a page: all other fragments of the page are passed on the way to where they end in their list.

Sources: P02 §3.1.1, §3.1.2, §5.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

from wcet_probe.errors import HeapTooSmallError
from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan
from wcet_probe.scenarios.families import Family, HeapRequest
from wcet_probe.scenarios.quick_fit_heap import PAGE_HEADER_BYTES, state, walk
from wcet_probe.scenarios.random_workload import random_plans
from wcet_probe.scenarios.traces import TraceBuilder

_LEAST_PAGES_FOR_RANDOM = 12
_LEAST_PAGES_FOR_FREE = 4
_PAGES_FOR_OTHER_RUNS = 6
_LEAST_PAGES_FOR_USED = 3

_CUT_DRIVER = "fragments linked = page / smallest fragment - 1"
_SCAN_DRIVER = "free runs visited = floor(pages / 2), pages = floor((H - 32) / (page + 16))"
_FREE_DRIVER = "fragments passed = page / smallest fragment - 1"

_WHY_CUT = (
    "No fragment of the smallest size is free: a page is taken and cut into as many fragments as a page can have.",
    "Each of them is linked into the list but the first, which is handed out.",
    "The search for the page is short, as in any state: every free run has a page.",
)
_WHY_SCAN = (
    "Every second page is a free run of its own: there cannot be more of them.",
    "The only run of two pages is the last that next fit comes to: all others are visited and are too short.",
)
_WHY_FREE = (
    "The block is the last used one of a page of smallest fragments: all others are passed, one by one, to their end.",
    "The page merges with the free runs at either side.",
)


@dataclass(frozen=True, slots=True)
class _Pages:
    """Pages of a heap.

    Attributes:
        bytes_each: size of a page.
        count: how many pages the heap has.
        fragments: smallest fragments in a page.
        smallest: their size.
    """

    bytes_each: int
    count: int
    fragments: int
    smallest: int


def _page_count(heap_bytes: int, page_bytes: int) -> int:
    return max(0, heap_bytes - 2 * PAGE_HEADER_BYTES) // (page_bytes + PAGE_HEADER_BYTES)


def _pages(request: HeapRequest, least: int = 1) -> _Pages:
    """The pages of the heap.

    Raises:
        HeapTooSmallError: there are fewer than ``least``.
    """
    size, smallest = (request.allocator.values[name] for name in ("page-bytes", "minimum-block"))
    count = _page_count(request.heap_bytes, size)
    if count < least:
        works = least * (size + PAGE_HEADER_BYTES) + 2 * PAGE_HEADER_BYTES
        message = (
            f"a heap of {request.heap_bytes} bytes has {count} page(s) of {size} bytes beside their headers, and the "
            f"scenario's state needs {least}; give at least {works} with --heap."
        )
        raise HeapTooSmallError(message)
    return _Pages(size, count, size // smallest, smallest)


# ----------------------------------------------------------------------------------------------------------- allocation


def _worst_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    pages = _pages(request)
    plans = [_cut_plan("worst-alloc", pages, whole=True)]
    if pages.count > 1:
        plans.append(_cut_plan("worst-alloc", pages, whole=False))
    if pages.count >= _LEAST_PAGES_FOR_USED:
        plans.append(_cut_plan("worst-alloc", pages, whole=False, used=1))
    plans += [_scan_plan(pages, long=long) for long in (2, 3) if pages.count >= long]
    return tuple(plans)


def _paper_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    pages = _pages(request)
    return (_cut_plan("paper-alloc", pages, whole=pages.count == 1),)


def _cut_plan(scenario: str, pages: _Pages, *, whole: bool, used: int = 0) -> ScenarioPlan:
    """No fragment is free. ``whole``: the only free run is a single page, else it is longer than that.

    ``used``: pages in use above the longer one. Headers are two to a line: with one page in use or with none, that of
    the page that is cut and that of the last one that is left are in two.
    """
    builder = TraceBuilder()
    if whole or used:  # All pages were in use: so next fit begins at the list's head.
        slots = [builder.malloc(pages.bytes_each) for _ in range(pages.count)]
        for slot in slots[-1:] if whole else slots[used:]:
            builder.free(slot)
    left = 1 if whole else pages.count - used
    return ScenarioPlan(
        scenario=scenario,
        variant="cut a page, "
        + ("the only free one" if whole else "off a longer run")
        + (f", {used} in use" if used else ""),
        trace=builder.trace(),
        measured=Operation(OperationKind.MALLOC, 0, pages.smallest),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"no fragment of {pages.smallest} bytes is free; malloc({pages.smallest}) cuts a page into "
            f"{pages.fragments} of them"
        ),
        why=_WHY_CUT,
        prediction={
            "fragments to be linked": pages.fragments - 1,
            "pages": pages.count,
            "free runs": 1,
            "free pages": left,
            "free runs visited": 1,
        },
        driver=_CUT_DRIVER,
        driver_value=pages.fragments - 1,
    )


def _scan_plan(pages: _Pages, *, long: int) -> ScenarioPlan:
    """Every second page is free, and the ``long`` lowest; next fit visits the run of these last."""
    singles = (pages.count - long) // 2
    builder = _comb(pages, long)
    size = pages.bytes_each + 1
    return ScenarioPlan(
        scenario="worst-alloc",
        variant=f"search all runs, the last has {long} pages",
        trace=builder.trace(),
        measured=Operation(OperationKind.MALLOC, 0, size),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"{singles} free runs of one page, then one of {long}; malloc({size}) needs two pages and visits "
            f"{singles + 1} runs"
        ),
        why=_WHY_SCAN,
        prediction={
            "free runs visited": singles + 1,
            "free runs": singles + 1,
            "free pages": singles + long,
            "pages": pages.count,
        },
        driver=_SCAN_DRIVER if long == 2 else "",
        driver_value=singles + 1 if long == 2 else None,
    )


def _comb(pages: _Pages, long: int) -> TraceBuilder:
    """Single free pages with used ones between, and at the low end a free run of ``long`` pages that was freed last.

    Next fit takes the last pages of a run: block i is page i from the top.
    """
    builder = TraceBuilder()
    slots = [builder.malloc(pages.bytes_each) for _ in range(pages.count)]
    first_of_long = pages.count - long
    for slot in slots[: first_of_long - 1 if long else None : 2]:
        builder.free(slot)
    for slot in slots[first_of_long:]:
        builder.free(slot)
    return builder


def _worst_failing_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    pages = _pages(request)
    runs, size = (pages.count + 1) // 2, pages.bytes_each + 1
    return (
        ScenarioPlan(
            scenario="worst-failing-alloc",
            variant="search all runs",
            trace=_comb(pages, 0).trace(),
            measured=Operation(OperationKind.MALLOC, 0, size),
            initial_cache=InitialCache.DIRTY,
            state=f"{runs} free runs of one page; malloc({size}) needs two and is refused",
            why=("Every second page is free: there cannot be more free runs.", "None is long enough: all are visited."),
            prediction={
                "free runs visited": runs,
                "free runs": runs,
                "free pages": runs,
                "pages": pages.count,
            },
            driver="free runs visited = ceil(pages / 2), pages = floor((H - 32) / (page + 16))",
            driver_value=runs,
            refused=True,
        ),
    )


def _best_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    pages = _pages(request)
    builder = TraceBuilder()
    builder.malloc(pages.smallest)
    return (
        ScenarioPlan(
            scenario="best-alloc",
            variant="a fragment is free",
            trace=builder.trace(),
            measured=Operation(OperationKind.MALLOC, 0, pages.smallest),
            initial_cache=InitialCache.WARM,
            state=(
                f"{pages.fragments - 1} free fragments of {pages.smallest} bytes; malloc({pages.smallest}) takes the "
                "first"
            ),
            why=("A fragment of the size is free: it is unlinked, and nothing is searched or cut.",),
            prediction={"free fragments of the size": pages.fragments - 1, "used blocks": 1},
        ),
    )


# --------------------------------------------------------------------------------------------------------- deallocation


def _worst_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    pages = _pages(request)
    if pages.count < _LEAST_PAGES_FOR_FREE:
        touched = (True, False) if pages.fragments > 1 else (False,)
        return tuple(_simple_free_plan("worst-free", pages, touched=each) for each in touched)
    plans = [_free_plan(pages), _simple_free_plan("worst-free", pages)]
    if pages.count >= _LEAST_PAGES_FOR_FREE + 2:
        plans.append(_between_plan(pages))
    if pages.count >= _LEAST_PAGES_FOR_FREE + 2 + _PAGES_FOR_OTHER_RUNS:
        plans.append(_between_plan(pages, other_runs=2))
    return tuple(plans)


def _paper_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    return (_simple_free_plan("paper-free", _pages(request)),)


def _simple_free_plan(scenario: str, pages: _Pages, *, touched: bool = False) -> ScenarioPlan:
    """One page is cut; what lies above and below it is free. The rover is at the lower run, if there is one.

    ``touched``: another fragment was used, and comes first in the list.
    """
    builder = TraceBuilder()
    above = builder.malloc(pages.bytes_each) if pages.count > 1 else None
    slot = builder.malloc(pages.smallest)
    if above is not None:
        builder.free(above)
    if touched:
        builder.free(builder.malloc(pages.smallest))
    variant = "all fragments of one page" + (", one used before" if touched else "")
    return _last_fragment(scenario, variant, pages, builder, slot, alone=True)


def _free_plan(pages: _Pages) -> ScenarioPlan:
    builder = TraceBuilder()
    above = builder.malloc(2 * pages.bytes_each)
    slot = builder.malloc(pages.smallest)
    below = builder.malloc(pages.bytes_each)
    _rover_above(builder, pages, above, below, left=pages.count - _LEAST_PAGES_FOR_FREE)
    return _last_fragment("worst-free", "fragments of one page", pages, builder, slot, alone=True)


def _rover_above(
    builder: TraceBuilder,
    pages: _Pages,
    above: int,
    below: int,
    *,
    left: int,
    others: Sequence[int] = (),
    taken: int = 1,
) -> None:
    """Free what lies above and below a page, and ``others``, and bring the rover to the upper run, by ``taken`` pages.

    Both runs leave their list, the upper one first: the rover moves on from one to the other, and on again.
    """
    if left:
        builder.malloc(left * pages.bytes_each)
    for slot in (above, below, *others):
        builder.free(slot)
    builder.malloc(taken * pages.bytes_each)


def _between_plan(pages: _Pages, other_runs: int = 0) -> ScenarioPlan:
    """In the list, fragments of other pages stand before and behind those of the page: two more lines are touched.

    So are the headers of two ``other_runs`` of a page, which stand before and behind the two that leave their list.
    They are passed on the way to the upper run, which the rover is brought to by a request for more than a page.
    """
    builder, taken = TraceBuilder(), 2 if other_runs else 1
    above = builder.malloc((1 + taken) * pages.bytes_each)
    own = [builder.malloc(pages.smallest) for _ in range(pages.fragments)]
    below = builder.malloc(pages.bytes_each)
    behind, before = ([builder.malloc(pages.smallest) for _ in range(pages.fragments)] for _ in range(2))
    builder.free(behind[-1])
    for slot in own[1:]:
        builder.free(slot)
    builder.free(before[-1])
    runs = [slots[1] for _ in range(other_runs) for slots in ([builder.malloc(pages.bytes_each) for _ in range(2)],)]
    used = _LEAST_PAGES_FOR_FREE + 2 + (_PAGES_FOR_OTHER_RUNS - 1 if other_runs else 0)
    for slot in runs[:1]:
        builder.free(slot)
    _rover_above(builder, pages, above, below, left=pages.count - used, others=runs[1:], taken=taken)
    variant = "between fragments of other pages" + (", other runs before and behind" if other_runs else "")
    return _last_fragment("worst-free", variant, pages, builder, own[0], alone=False)


def _last_fragment(
    scenario: str, variant: str, pages: _Pages, builder: TraceBuilder, slot: int, *, alone: bool
) -> ScenarioPlan:
    others = pages.fragments - 1
    neighbours = min(2, pages.count - 1)
    return ScenarioPlan(
        scenario=scenario,
        variant=variant,
        trace=builder.trace(),
        measured=Operation(OperationKind.FREE, slot),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"the only used one of {pages.fragments} fragments of a page; free passes the {others} others, and the "
            f"page merges with {neighbours} free run(s)"
        ),
        why=_WHY_FREE
        if alone
        else (
            *_WHY_FREE,
            "In the list, fragments of other pages stand before and behind those of the page: more lines are touched.",
        ),
        prediction={
            "free fragments of the page": others,
            "free neighbours": neighbours,
            "links to other pages": 0 if alone else 2,
            "pages": pages.count,
        },
        driver=_FREE_DRIVER,
        driver_value=others,
    )


def _best_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    pages = _pages(request)
    builder = TraceBuilder()
    slots = [builder.malloc(pages.smallest) for _ in range(2)]
    return (
        ScenarioPlan(
            scenario="best-free",
            variant="another fragment of the page is used",
            trace=builder.trace(),
            measured=Operation(OperationKind.FREE, slots[0]),
            initial_cache=InitialCache.WARM,
            state="two used fragments of a page; free puts one back into the list",
            why=("Another fragment of the page is used: the one freed is linked, and nothing else happens.",),
            prediction={"free fragments of the page": pages.fragments - 2, "used blocks": 2},
        ),
    )


def _random(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    _pages(request, _LEAST_PAGES_FOR_RANDOM)
    return random_plans(request)


FAMILY = Family(
    builders=MappingProxyType(
        {
            "worst-alloc": _worst_alloc,
            "worst-free": _worst_free,
            "best-alloc": _best_alloc,
            "best-free": _best_free,
            "random": _random,
            "worst-failing-alloc": _worst_failing_alloc,
            "paper-alloc": _paper_alloc,
            "paper-free": _paper_free,
        }
    ),
    walk=walk,
    state=state,
)

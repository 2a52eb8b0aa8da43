"""Tiny random programs for `tests.analyzer.relational_programs`: any policy, geometry and kind of access."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from tests.analyzer.concrete_caches import _program, config_of
from tests.analyzer.relational_programs import LINE_BYTES, Choice, Program, Step, Sum, Variable, variables_of
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.facts.memory import Pointers
from wcet_probe.model.target import MemoryRange, Replacement


def random_program(random: Random, policy: Replacement | None = None, most_ways: int = 4) -> Program:
    """A tiny program with any policy and kind of access."""
    policy = policy or random.choice(list(Replacement))
    sets = random.choice((2, 2, 4))
    ways = random.choice([w for w in (1, 2, 2, 3, 4) if w <= most_ways and (w != 3 or policy is not Replacement.PLRU)])
    config = config_of(policy, ways, sets=sets, write_allocate=random.random() < 0.7)
    config = replace(config, line_bytes=LINE_BYTES, write_back=random.random() < 0.7)
    lines = sets * random.choice((2, 3, 3, 4) if sets == 2 else (2, 3))
    asserted = random.choice((1, 4, 8, 8, 16, 16))
    count, edges, _ = _program(random)
    edges = sorted(set(edges))
    above = _dominators(count, edges)
    places = [random.choice((0, 1, 1, 2, 2, 3, 4)) for _ in range(count)]
    variables = tuple(_variable(random, count, places, asserted, lines) for _ in range(random.randint(1, 4)))
    variables = _merged(random, variables, edges, above)
    choice, head, killed = _choice(random, variables, edges, above, asserted)
    spread = [random.choice(range(0, min(sets - 1, 2) * LINE_BYTES + 1, 4)) for _ in range(3)]
    unnamed, skipped = random.choice((0.0, 0.0, 0.15)), random.choice((0.0, 0.0, 0.3))
    stores = random.choice((0.0, 0.3, 0.5))

    def step(point: int) -> Step:
        kind, offset = random.random(), random.choice(spread)
        known = [n for n, one in enumerate(variables) if one.point is None or one.point in above[point]]
        to: int | Choice | None = random.choice(known) if known else None
        if choice and head in above[point] and random.random() < 0.5:
            to = choice
        if kind > 0.75 or to is None:
            to, offset = None, LINE_BYTES * random.randrange(lines)
        return Step(to, offset, random.random() < stores, random.random() >= skipped, is_named=kind >= unnamed)

    steps = tuple(tuple(step(point) for _ in range(place)) for point, place in enumerate(places))
    return Program(steps, tuple(edges), variables, killed, config, asserted, lines + 3)


def random_sweep(random: Random) -> Program:
    """A loop, perhaps in a loop, whose accesses move on in each round, beside others that do not."""
    sets = random.choice((4, 4, 8))
    policy = random.choice(list(Replacement))
    config = config_of(policy, random.choice((1, 2, 2, 4)), sets=sets, write_allocate=random.random() < 0.7)
    config = replace(config, line_bytes=LINE_BYTES, write_back=random.random() < 0.7)
    edges = random.choice((
        ((0, 1), (1, 1), (1, 2)),
        ((0, 1), (1, 2), (2, 1), (1, 3)),
        ((0, 1), (1, 2), (1, 3), (2, 1), (3, 1), (3, 4)),
        ((0, 1), (1, 2), (2, 2), (2, 3), (3, 2), (3, 1), (1, 4)),
    ))  # fmt: skip
    count = 1 + max(target for _, target in edges)
    header = 2 if count == 5 and (2, 2) in edges else 1
    back = {edge for edge in edges if edge[1] == header and edge[0] >= header}
    sign, asserted = random.choice((1, 1, -1)), random.choice((4, 4, 8))
    moves = {edge: sign * asserted * random.choice((0, 1, 1, 1, 1, 2)) for edge in sorted(back)}
    arguments = tuple(Variable(None, 0, tuple(range(0, 8 * LINE_BYTES, asserted)), strided.top(32)) for _ in range(3))
    sources = {edge: (0, 0) for edge in edges if edge[1] == header} | {e: (3, move) for e, move in moves.items()}
    loaded = Variable(random.choice(sorted(e[0] for e in back)), 0, arguments[0].choices, strided.top(32))
    variables = (*arguments, Variable(header, 0, (0,), strided.top(32), sources), loaded)
    stores, skipped = random.choice((0.0, 0.3)), random.choice((0.0, 0.2))

    def step(point: int) -> Step:
        inside = header <= point < count - 1
        to = random.choice((0, 1, 3, 3, 3, 4 if point == loaded.point else 3)) if inside else random.choice((0, 1))
        offset = random.choice((0, 0, 0, 4))
        return Step(to, offset, random.random() < stores, random.random() >= skipped, is_named=True)

    steps = tuple(tuple(step(point) for _ in range(random.choice((0, 1, 1, 2)))) for point in range(count))
    return Program(steps, edges, variables, {}, config, asserted, 8)


def random_walk(random: Random) -> Program:
    """A loop as of `random_sweep`, which goes on to what it loads: a line that was accessed gets another name."""
    program = random_sweep(random)
    *rest, moving, loaded = program.variables
    asserted = program.asserted_bytes
    chased = {edge: (4, asserted * random.choice((0, 0, 1, -1))) for edge in moving.sources if edge[0] == loaded.point}
    moving = replace(moving, sources={**moving.sources, **chased})
    before = {edge[0] for edge in chased}

    def more(point: int, own: tuple[Step, ...]) -> tuple[Step, ...]:
        if not own or point not in before:
            return own
        return *own, replace(random.choice(own), to=4, offset=asserted * random.choice((0, 0, 1)))

    steps = tuple(more(point, own) for point, own in enumerate(program.steps))
    return replace(program, variables=(*rest, moving, loaded), steps=steps)


def random_copies(random: Random) -> Program:
    """As of `random_sweep`, but with one access of the sweep in both branches of the loop, or in some of its blocks."""
    program = random_sweep(random)
    loop = range(program.variables[3].point or 0, len(program.steps) - 1)
    copied = Step(3, random.choice((0, 4)), random.random() < 0.2, is_certain=True, is_named=True)
    chosen = {point for point in loop if random.random() < 0.6} | ({2, 3} & {*loop})

    def more(point: int, own: tuple[Step, ...]) -> tuple[Step, ...]:
        place = random.randint(0, len(own))
        return (*own[:place], copied, *own[place:]) if point in chosen else own

    return replace(program, steps=tuple(more(point, own) for point, own in enumerate(program.steps)))


def random_renaming(random: Random) -> Program:
    """A tiny program whose blocks give new names to what older ones mean, some bytes further, again and again."""
    sets, asserted = random.choice((4, 4, 8)), random.choice((8, 16, 16))
    config = config_of(random.choice(list(Replacement)), random.choice((2, 2, 2, 4)), sets=sets)
    config = replace(config, line_bytes=LINE_BYTES, write_allocate=random.random() < 0.8)
    count, edges, _ = _program(random)
    edges = sorted(set(edges))
    above = _dominators(count, edges)
    page = sets * LINE_BYTES

    def argument() -> Variable:
        low = 16 * page + random.randrange(0, page, LINE_BYTES)
        if random.random() < 0.5:
            choices = (low, low + page)
            return Variable(None, 0, choices, strided.between(32, *choices, page))
        return Variable(None, 0, tuple(range(16 * page, 18 * page, asserted)), strided.top(32))

    variables = [argument() for _ in range(3)]
    steps_of = (0, 0, 0, asserted, -asserted, LINE_BYTES, -LINE_BYTES, page // 2, page // 4)
    for _ in range(random.randint(1, 3)):
        head = random.randrange(1, count)
        sources = {}
        for edge in edges:
            if edge[1] == head:
                known = [
                    n
                    for n, point in enumerate([*(one.point for one in variables), head])
                    if point is None or point in above[edge[0]]
                ]
                sources[edge] = random.choice([*known, known[-1]]), random.choice(steps_of)
        variables.append(Variable(head, 0, (0,), strided.top(32), sources))

    offsets = [0, *(random.choice((0, 4, asserted, LINE_BYTES, 2 * LINE_BYTES)) for _ in range(2))]
    stores = random.choice((0.0, 0.0, 0.4))

    def step(point: int) -> Step:
        known = [n for n, one in enumerate(variables) if one.point is None or one.point in above[point]]
        to = random.choice([0, *known, known[-1]])
        certain = random.random() < 0.9
        return Step(to, random.choice(offsets) if to else 0, random.random() < stores, certain, is_named=True)

    steps = tuple(tuple(step(point) for _ in range(random.choice((0, 1, 2, 2, 3)))) for point in range(count))
    return Program(steps, tuple(edges), tuple(variables), {}, config, asserted, 2 * sets)


def random_index(random: Random) -> Program:
    """A tiny program with accesses to a pointer and an index of few values, beside those to the pointer alone."""
    return _indexed(random, random_program(random))


def told_index(random: Random) -> Program:
    """A pointer and two indices of few values in some blocks, with a fact that may not hold of the pointer."""
    sets, edges = random.choice((4, 8)), random.choice((((0, 1),), ((0, 1), (1, 1), (1, 2)), ((0, 1), (0, 2), (1, 2))))
    config = config_of(random.choice(("lru", "lru", "fifo")), random.choice((2, 4)), sets=sets)
    moved, pages = random.choice((0, 0, 4, 8)), range(16 * sets * LINE_BYTES, 18 * sets * LINE_BYTES, LINE_BYTES)

    def index(number: int) -> Variable:
        choices = tuple(range(0, random.choice((1, 2, 2, 3)) << number, 1 << number))
        known = strided.between(32, 0, choices[-1], 1 << number) if len(choices) > 1 else strided.constant(32, 0)
        return Variable(None, 0, choices, known)

    pointer = Variable(None, 0, tuple(page + moved for page in pages), strided.top(32))
    variables = (pointer, index(random.choice((2, 3))), index(random.choice((2, 3, 4))))

    def step() -> Step:
        to = random.choice((0, Sum(0, 1), Sum(0, 2)))
        return Step(to, random.choice((0, 0, 4, 8, 8, -8, 16)), random.random() < 0.2, random.random() < 0.9, True)

    count = 1 + max(target for _, target in edges)
    steps = tuple(tuple(step() for _ in range(random.choice((0, 1, 2, 3)))) for _ in range(count))
    asserted = random.choice((4, 8, 16, 16))
    return Program(steps, edges, variables, {}, replace(config, line_bytes=LINE_BYTES), asserted, 4 * sets)


def _indexed(random: Random, program: Program) -> Program:
    count, above = len(program.steps), _dominators(len(program.steps), program.edges)
    places = [len(block) for block in program.steps]
    stride = random.choice((1, 4, 4, 8, 12))
    choices = tuple(range(random.choice((0, 0, 4)), 32, stride))[: random.randint(1, 3)]
    known = (
        strided.constant(32, choices[0]) if len(choices) == 1 else strided.between(32, choices[0], choices[-1], stride)
    )
    point = random.choice((None, random.randrange(count)))
    index = Variable(point, 0 if point is None else random.randint(0, places[point]), choices, known)
    variables, number = (*program.variables, index), len(program.variables)

    def changed(place: int, step: Step) -> Step:
        usable = point is None or point in above[place]
        if not usable or not step.is_named or not isinstance(step.to, int) or random.random() < 0.3:
            return step
        return replace(step, to=Sum(step.to, number), offset=random.choice((0, 0, 4, 8, 16)))

    steps = tuple(tuple(changed(place, step) for step in block) for place, block in enumerate(program.steps))
    return replace(program, variables=variables, steps=steps)


def told_program(random: Random) -> Program:
    """A tiny program whose facts speak of some accesses only, and hold of some values only; others are to sums."""
    program = random_program(random)
    above = _dominators(len(program.steps), program.edges)
    variables = tuple(_loosened(random, one) for one in program.variables)
    favourite = random.choice((None, *range(len(variables))))
    offsets = [random.choice((0, 4, 8, 12, 16, 32)) for _ in range(4)]

    def changed(point: int, step: Step) -> Step:
        known = [n for n, one in enumerate(variables) if one.point is None or one.point in above[point]]
        if not step.is_named or not isinstance(step.to, int):
            return step
        if favourite in known and random.random() < 0.5:
            step = replace(step, to=favourite, offset=random.choice(offsets))
        if random.random() < 0.15:
            return replace(step, to=Sum(random.choice(known), random.choice(known)))
        return step

    steps = tuple(tuple(changed(point, step) for step in block) for point, block in enumerate(program.steps))
    far = max((sum(max(variables[n].choices) for n in variables_of(s.to)) for block in steps for s in block), default=0)
    asserted = {
        (point, index): _asserted(random, program.line_count)
        for point, block in enumerate(steps)
        for index, step in enumerate(block)
        if step.is_named and random.random() < 0.4
    }
    lines = max(program.line_count, far // LINE_BYTES + 3)
    everywhere = random.choice((1, 1, 1, 4))
    return replace(
        program, steps=steps, variables=variables, asserted=asserted, asserted_bytes=everywhere, line_count=lines
    )


def visiting_program(random: Random) -> Program:
    """A loop as of `random_sweep` or `random_walk`, some accesses of which visit a line first, and some again."""
    program = random.choice((random_sweep, random_walk))(random)
    asserted = {
        (point, index): Pointers(program.asserted_bytes, visit=random.choice(("first", "again")))
        for point, block in enumerate(program.steps)
        for index in range(len(block))
        if random.random() < 0.6
    }
    config = replace(program.config, write_back=True, write_allocate=random.random() < 0.7)
    return replace(program, asserted=asserted, config=config)


def random_null(random: Random) -> Program:
    """As of `told_program`, where what meets other pointers may be null."""
    program = told_program(random)

    def perhaps_null(variable: Variable) -> Variable:
        edges = sorted(variable.sources)[1:] if random.random() < 0.7 else []
        nulls = {edge: (None, 0) for edge in edges if random.random() < 0.6}
        return replace(variable, sources={**variable.sources, **nulls})

    return replace(program, variables=tuple(perhaps_null(one) for one in program.variables))


def _loosened(random: Random, variable: Variable) -> Variable:
    """With values that what is told of pointers need not be true of."""
    if variable.point and random.random() < 0.5 and not variable.sources:
        variable = replace(variable, point=None, place=0)  # most misses are shared where a value lasts
    if variable.sources or not variable.range.is_top or random.random() < 0.3:
        return variable
    return replace(variable, choices=tuple(one + random.choice((0, 0, 0, 4, 8, 12)) for one in variable.choices))


def _asserted(random: Random, lines: int) -> Pointers:
    alignment = random.choice((4, 8, 8, 16, 16))
    remainder = random.choice((0, 0, random.randrange(0, alignment, 4)))
    if random.random() < 0.7:
        return Pointers(alignment, remainder=remainder)
    base = random.randrange(0, (lines - 2) * LINE_BYTES, 4)
    return Pointers(alignment, extent=MemoryRange(base, random.choice((16, 32, 48, 64, 96))), remainder=remainder)


def _choice(
    random: Random,
    variables: Sequence[Variable],
    edges: Sequence[tuple[int, int]],
    above: Mapping[int, frozenset[int]],
    asserted: int,
) -> tuple[Choice | None, int, dict[tuple[int, int], frozenset[int]]]:
    """A choice that is made where blocks meet, which block that is, and what the edges to there are silent about."""
    heads = [t for t in above if sum(target == t for _, target in edges) > 1]
    if len(variables) < 3 or not heads or random.random() < 0.3:
        return None, 0, {}
    head = random.choice(heads)
    condition, one, other = random.sample(range(len(variables)), 3)
    used = [variables[each] for each in (condition, one, other)]
    if any(each.point is not None and head in above[each.point] for each in used):
        return None, 0, {}  # behind the head its old value had another name
    if used[0].point is not None and used[0].point not in above[head]:
        return None, 0, {}
    if any((each.range.low | each.range.stride) % asserted for each in used[1:] if not each.range.is_top):
        return None, 0, {}  # what is told of pointers is taken to be true of all that a choice is made of
    killed = {}
    for edge in edges:
        if edge[1] == head:
            unknown = {
                each
                for each in (one, other)
                if variables[each].point is not None and variables[each].point not in above[edge[0]]
            }
            unknown |= {each for each in (condition, one, other) if random.random() < 0.2}
            killed[edge] = frozenset(unknown) - {v.sources[edge][0] for v in variables if edge in v.sources}
    return Choice(condition, random.choice(variables[condition].choices), one, other), head, killed


def _merged(
    random: Random,
    variables: tuple[Variable, ...],
    edges: Sequence[tuple[int, int]],
    above: Mapping[int, frozenset[int]],
) -> tuple[Variable, ...]:
    """One more variable, perhaps, which is made of others where blocks meet."""
    heads = [t for t in above if t and sum(target == t for _, target in edges) > 1]
    if not heads or random.random() < 0.4:
        return variables
    head, number = random.choice(heads), len(variables)
    points = [*(one.point for one in variables), head]
    deltas = [random.choice((0, 0, 4, 8, 16, 32, 64)) for _ in range(2)]
    sources = {}
    for edge in edges:
        if edge[1] == head:
            known = [n for n in range(number + 1) if points[n] is None or points[n] in above[edge[0]]]
            if not known:
                return variables
            sources[edge] = random.choice([*known, known[-1]]), random.choice(deltas)
    return (*variables, Variable(head, 0, (0,), strided.top(32), sources))


def _dominators(count: int, edges: Sequence[tuple[int, int]]) -> dict[int, frozenset[int]]:
    """The blocks that each block is only reached through, itself among them."""
    every = frozenset(range(count))
    above = dict.fromkeys(every, every) | {0: frozenset({0})}
    while True:
        new = {
            point: frozenset({point}).union(
                frozenset.intersection(*(above[source] for source, target in edges if target == point))
            )
            if point
            else frozenset({0})
            for point in every
        }
        if new == above:
            return above
        above = new


def _variable(random: Random, count: int, places: Sequence[int], asserted: int, lines: int) -> Variable:
    point = random.choice((None, random.randrange(count), random.randrange(count)))
    place = 0 if point is None else random.randint(0, places[point])
    if random.random() < 0.6:  # nothing is known but what is told
        return Variable(point, place, tuple(range(0, lines * LINE_BYTES, max(4, asserted))), strided.top(32))
    stride = random.choice((4, 8, 16, 32, 64))
    low = random.randrange(0, lines * LINE_BYTES, 4)
    choices = tuple(range(low, lines * LINE_BYTES, stride))[: random.randint(1, 5)]
    known = strided.constant(32, low) if len(choices) == 1 else strided.between(32, low, choices[-1], stride)
    return Variable(point, place, choices, known)


def random_fifo(random: Random) -> Program:
    """Another tiny program, with first-in first-out: with more stores, and what a loop loads evicts what it sweeps."""
    program = random.choice((random_program, random_sweep, random_copies, random_copies, random_walk))(random)
    stores, loads = random.choice((0.0, 0.4)), random.choice((0.0, 0.6))
    loaded = len(program.variables) - 1
    place = program.variables[loaded].point

    def changed(point: int, step: Step) -> Step:
        if point == place and step.to != 3 and random.random() < loads:
            step = replace(step, to=loaded)
        return replace(step, is_store=random.random() < stores)

    steps = tuple(tuple(changed(point, step) for step in block) for point, block in enumerate(program.steps))
    ways, allocates = random.choice((1, 2, 2, 3)), random.random() < 0.4
    config = replace(program.config, replacement=Replacement.FIFO, ways=ways, write_allocate=allocates, write_back=True)
    return replace(program, steps=steps, config=config)


def random_chase(random: Random) -> Program:
    """A loop that stores to where it was in the round before: first-in first-out, without write-allocate."""
    edges, body = random.choice((
        (((0, 1), (1, 1), (1, 2)), (1,)),
        (((0, 1), (1, 2), (2, 1), (2, 3)), (2,)),
        (((0, 1), (1, 2), (2, 2), (2, 1), (2, 3)), (2,)),
        (((0, 1), (1, 2), (1, 3), (2, 1), (3, 1), (3, 4)), (2, 3)),
        (((0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 1), (4, 5)), (2, 3, 4)),
    ))  # fmt: skip
    asserted = 2 * LINE_BYTES
    values = tuple(range(0, random.choice((3, 3, 4)) * asserted, asserted))
    others = [Variable(None, 0, values, strided.top(32)) for _ in range(random.choice((2, 2, 3)))]
    place = random.choice((None, 0, 1, 1, 1))
    loaded = Variable(place, 1, values, strided.top(32))
    variables, last = [*others, loaded], len(others)
    for _ in range(random.choice((1, 1, 2))):
        back = [(random.choice((last, last, last, 0)), 0) if edge[0] else (0, 0) for edge in edges if edge[1] == 1]
        sources = dict(zip((edge for edge in edges if edge[1] == 1), back, strict=True))
        variables.append(Variable(1, 0, (0,), strided.top(32), sources))
        last += 1
    skipped, stores = random.choice((0.0, 0.3)), random.choice((0.0, 0.3))

    def inside() -> Step:
        to = random.choice((*range(len(variables)), len(others), len(others), len(others)))
        offset = random.choice((0, 0, 0, 0, 0, 8))
        return Step(to, offset, random.random() < stores, random.random() >= skipped, is_named=True)

    steps: list[tuple[Step, ...]] = [()] * (1 + max(target for _, target in edges))
    if random.random() < 0.3:
        steps[0] = tuple(replace(inside(), to=random.choice((*range(len(others)), 0))) for _ in range(2))
    remembered = Step(len(others) + 1, 0, is_store=True, is_certain=random.random() < 0.9, is_named=True)
    for point in body:
        steps[point] = tuple(inside() for _ in range(random.choice((1, 2, 3, 4, 5))))
    steps[1] = (remembered, *(inside() for _ in range(random.choice((0, 0, 1)))), *steps[1])
    config = replace(config_of("fifo", random.choice((2, 2, 3)), sets=2, write_allocate=False), write_back=True)
    config = replace(config, line_bytes=LINE_BYTES)
    return Program(tuple(steps), edges, tuple(variables), {}, config, asserted, 2 * len(values) + 4)

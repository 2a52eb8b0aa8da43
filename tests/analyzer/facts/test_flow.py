"""Sums of counts, bound to the blocks and loops of real images, and what they do to a bound."""

import pytest

from tests.analyzer.loops.debug_unit import CODE_OF_F, debug_unit
from tests.path_check import Proved, attack, check_emulated
from tests.path_check import proved as proved_of
from tests.support import TARGETS, guest_of, image_of
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.facts.source_index import index_sources
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.catalog.lookup import load_target
from wcet_probe.cli.app import main
from wcet_probe.errors import ExitCode, UsageError
from wcet_probe.isa.decode import decode
from wcet_probe.isa.timing import costs
from wcet_probe.model.proof import Bound

SOURCE = """\
struct node { struct node *left; struct node *right; unsigned size; };
struct node *volatile root;
volatile unsigned sink;

__attribute__((noinline)) unsigned walk(unsigned size)
{
    struct node *node = root;
    unsigned steps = 0;
    while (node) { /* loop: down */
        /* point: step */
        sink = node->size;
        steps++;
        node = node->size < size ? node->left : node->right;
    }
    for (;;) { /* loop: up */
        /* point: back */
        sink = steps;
        if (sink == size)
            break;
    }
    return steps;
}

static inline void mark(unsigned steps)
{
    /* point: marked */
    sink = steps;
}

unsigned twice(unsigned size)
{
    unsigned steps = walk(size);
    mark(steps);
    steps += walk(size + 1);
    mark(steps);
    return steps;
}

void clear(struct node *node, unsigned count)
{
    while (count-- > 0) { /* loop: all */
        struct node *right = node->right;
        node->size = 0;
        if (right != 0)
            /* point: linked */
            right->left = node->left;
        node++;
    }
}

static inline void told(unsigned steps)
{
    /* point: here */
    sink = steps;
}

void tell(unsigned steps)
{
    /* point: all */
    told(steps);
}
"""
LOOPS = """
[[loop]]
function = "walk"
label = "down"
max = 9
because = "it is so"
sha256 = "HASH"

[[loop]]
function = "walk"
label = "up"
max = 7
because = "it is so"
sha256 = "HASH"

[[loop]]
function = "clear"
label = "all"
max = 5
because = "it is so"
sha256 = "CLEAR"
"""


def proved(target_name: str, flow: str = "", entry: str = "twice", more: str = "") -> Bound:
    target = load_target(target_name)
    image = image_of(SOURCE, target, ".c")
    instructions = decode(image)
    index = index_sources({"guest.c": SOURCE})
    text = LOOPS + (f'\n[[flow]]\nbecause = "it is so"\n{flow}\n' if flow else "") + more
    for name, mark in (
        ("walk", "HASH"),
        ("twice", "TWICE"),
        ("mark", "MARK"),
        ("clear", "CLEAR"),
        ("told", "TOLD"),
        ("tell", "TELL"),
    ):
        text = text.replace(mark, index.function(name).sha256)
    facts = parse_facts("facts.toml", text)
    request = BoundRequest(
        image, target, instructions, costs(instructions, target), entry, facts, {"guest.c": SOURCE}, {"k": 2}
    )
    return prove(request)


WALK = 'function = "walk"\nsha256 = "HASH"\n'


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_a_sum_of_bodies_limits_both_loops_together(target):
    free, together = proved(target), proved(target, WALK + 'sum = { "loop down" = 1, "loop up" = 1 }\nmax = 12')
    assert together.instructions < free.instructions
    (claim,) = together.flow_claims
    assert claim.constant == 12
    # The loop with a test in front counts without its entries, the other one in full.
    assert [weight for _, weight in claim.entries] == [-1]
    assert sorted(weight for _, weight in claim.blocks) == [1, 1]


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_a_sum_for_each_call_holds_in_each_context(target):
    flow = 'sum = { "loop down" = 1, "loop up" = 1 }\n'
    once = proved(target, WALK + flow + "max = 12", entry="walk")
    each = proved(target, WALK + flow + 'max = 12\nper = "call"')
    whole = proved(target, WALK + flow + "max = 24")
    assert each.instructions == whole.instructions  # both calls alike: here the two say the same
    assert proved(target, WALK + flow + 'max = 12\nper = "call"', entry="walk").instructions == once.instructions
    (claim,) = each.flow_claims
    assert claim.constant == 0
    assert -12 in dict(claim.blocks).values()


@pytest.mark.parametrize("target", TARGETS)
def test_another_functions_places_and_weights_that_are_expressions(target):
    flow = """function = "twice"
sum = { "point walk:back" = "k", "loop walk:down" = 1 }
max = "10 * k"
sha256 = { walk = "HASH" }"""
    bound = proved(target, flow)
    assert bound.instructions < proved(target).instructions
    assert 2 in dict(bound.flow_claims[0].blocks).values()


@pytest.mark.parametrize(
    ("flow", "message"),
    [
        (WALK + 'sum = { "branch back" = -1, "loop down" = 1 }\nmax = 0', "only what the source counts may"),
        (
            'function = "clear"\nsha256 = "CLEAR"\nsum = { "loop all" = -1, "point walk:step" = 1 }\nmax = 0',
            "the fact has no hash of walk",
        ),
        (WALK + 'sum = { "loop sideways" = 1 }\nmax = 0', "walk has no loop 'sideways'"),
        (WALK + 'sum = { "loop sideways" = -1 }\nmax = 0', "walk has no loop 'sideways'"),
        (WALK + 'sum = { "point nowhere" = -1 }\nmax = 0', "unknown point 'nowhere'"),
        (
            'function = "twice"\nsum = { "loop walk:down" = 1 }\nmax = 0\nsha256 = "TWICE"',
            "the fact has no hash of walk",
        ),
    ],
)
def test_what_a_sum_cannot_hold(flow, message):
    with pytest.raises(UsageError, match=message):
        proved("cortex-m4", flow)


def test_what_takes_off_is_counted_by_the_source():
    """The loop has 9 rounds for each entry at most, and its function is called twice: so much may come to the other."""
    bound = proved("cortex-m4", WALK + 'sum = { "point back" = 1, "loop down" = -1 }\nmax = 0')
    (claim,) = bound.flow_claims
    assert (claim.entries, claim.constant) == ((), 18)
    assert [weight for _, weight in claim.blocks] == [1]
    assert any("takes off 18 at most, by the source" in one.statement for one in bound.assumptions)


LEFT_OUT = """\
volatile unsigned sink;
unsigned kept;
void entry(unsigned n)
{
    _Pragma("loopbound min 4 max 4")
    for (unsigned i = 0; i < 4; i++) { /* loop: first */
        /* point: stored */
        kept = n + i;
    }
    for (unsigned i = 0; i != (n & 4); i++) { /* loop: second */
        /* point: told */
        sink = i;
    }
}
"""


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("less", ["point stored", "loop first"])
def test_executions_that_a_compiler_leaves_out_take_off_as_well(target, less):
    """Of four stores one is left, as the others are overwritten: one round of the second loop was allowed of four."""
    fact = f"""
[[flow]]
function = "entry"
sum = {{ "point told" = 1, "{less}" = -1 }}
max = 0
because = "each loop has four iterations, or the second one none"
"""
    own = with_facts(LEFT_OUT, target, fact)
    assert attack(own, 4) <= own.bound.instructions
    check_emulated(own, 4)
    assert [one.constant for one in own.bound.flow_claims] == [4]


def with_facts(source: str, target: str, text: str, *, name: str = "entry") -> Proved:
    """``name`` with facts about it, which get their hash."""
    guest = guest_of(source, load_target(target), ".c")
    return proved_of(guest, name, parse_facts("facts.toml", hashed(text, source, name)), {"guest.c": source})


def hashed(text: str, source: str, name: str = "entry") -> str:
    """The facts ``text`` with the hash of the function ``name``."""
    own = index_sources({"guest.c": source}).function(name).sha256
    return text.replace("because =", f'sha256 = "{own}"\nbecause =')


def test_what_takes_off_needs_a_count_of_its_loops():
    fact = """
[[flow]]
function = "entry"
sum = { "point told" = 1, "point stored" = -1 }
max = 0
because = "it is so"
"""
    source = LEFT_OUT.replace('    _Pragma("loopbound min 4 max 4")\n', "")
    with pytest.raises(UsageError, match=r"negative weight, is not clear: no pragma .* loop at guest.c:5"):
        with_facts(source, "cortex-m4", fact)
    loop = '[[loop]]\nfunction = "entry"\nlabel = "first"\nmax = 4\noptional = true\nbecause = "so"\n'
    (claim,) = with_facts(source, "cortex-m4", loop + fact).bound.flow_claims
    assert claim.constant == 4
    (claim,) = with_facts(source, "cortex-m4", loop.replace("max = 4", "total = 3") + fact).bound.flow_claims
    assert claim.constant == 3


def test_a_sum_of_a_call_that_has_none_of_its_places_has_no_effect():
    """Its only factor was 0, on which the solver's scaling ended the process."""
    source = """\
volatile unsigned sink;
__attribute__((noinline)) void leaf(unsigned n) { sink = n; }
void entry(unsigned n)
{
    leaf(n);
    /* point: told */
    sink = n + 1;
}
"""
    index = index_sources({"guest.c": source})
    hashes = ", ".join(f'{name} = "{index.function(name).sha256}"' for name in ("leaf", "entry"))
    fact = f"""
[[flow]]
function = "leaf"
per = "call"
sum = {{ "point entry:told" = 1 }}
max = 0
because = "leaf does not call entry"
sha256 = {{ {hashes} }}
"""
    own = proved_of(
        guest_of(source, load_target("cortex-m4"), ".c"), "entry", parse_facts("f", fact), {"guest.c": source}
    )
    assert attack(own, 1) == own.bound.instructions


FOREVER = """\
volatile unsigned sink;
void f(unsigned n, unsigned far)
{
    for (;;) { /* loop: all */
        if (n-- == 0)
            break;
        sink = far;
    }
}
"""
FOREVER_CODE = (
    CODE_OF_F
    + """\
f: .loc 1 3
ldr r3, =sink
first: .loc 1 5
subs r0, r0, #1
bcc out
.loc 1 7
cbz r1, second
str r1, [r3]
b first
second: .loc 1 7
str r1, [r3]
.loc 1 5
subs r0, r0, #1
bcs second
out: .loc 1 9
bx lr
.ltorg
end: .size f, . - f
.bss
sink: .space 4
"""
)
"""As GCC unswitches such a loop (-Os): the first copy's test is the one in front of the second copy, too."""


def test_an_iteration_that_begins_in_one_copy_of_a_loop_and_goes_on_in_another_counts_once():
    """Five executions of the two headers are four iterations: of a true fact, runs said CONTRADICTED."""
    guest = guest_of(FOREVER_CODE + debug_unit("GNU C17 12.2.1"), load_target("cortex-m4"))
    sha256 = index_sources({"guest.c": FOREVER}).function("f").sha256
    fact = f"""
[[loop]]
function = "f"
label = "all"
max = 4
because = "n is 3 at most, and the last iteration is left"
sha256 = "{sha256}"
[[flow]]
function = "f"
sum = {{ "loop all" = 1 }}
max = 4
because = "n is 3 at most, and the last iteration is left"
sha256 = "{sha256}"
"""
    own = proved_of(guest, "f", parse_facts("facts.toml", fact), {"guest.c": FOREVER})
    (claim,) = own.bound.flow_claims
    assert [weight for _, weight in claim.entries] == [-1, -1]
    for far in (0, 1):
        assert attack(own, 3, far) <= own.bound.instructions
        check_emulated(own, 3, far)


def test_a_point_that_has_become_several_blocks_is_left_out_only_if_the_fact_says_so():
    flow = 'function = "mark"\nsha256 = "MARK"\nsum = { "point marked" = 1 }\nmax = 1'
    with pytest.raises(UsageError, match=r"'marked' has become several blocks; .* optional = true"):
        proved("cortex-m4", flow)
    bound = proved("cortex-m4", flow + "\noptional = true")
    assert bound.flow_claims == ()
    assert bound.instructions == proved("cortex-m4").instructions
    (idle,) = bound.idle_facts
    assert idle.why == "a point of it has become several blocks"


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_what_covers_no_whole_block_has_no_effect_and_is_told(target):
    """Of the line is only a part of the first block."""
    line = SOURCE.splitlines().index("    struct node *node = root;") + 1
    fact = f'\n[[infeasible]]\nfunction = "walk"\nline = {line}\nbecause = "it is so"\nsha256 = "HASH"\n'
    bound = proved(target, more=fact)
    (idle,) = bound.idle_facts
    assert f"no whole block is of line {line} of walk alone" in idle.why
    assert idle.where not in {one.id.removeprefix("fact ") for one in bound.assumptions}
    assert (bound.instructions, bound.cycles) == (proved(target).instructions, proved(target).cycles)


@pytest.mark.covering(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("fact", "why"),
    [
        (
            '[[infeasible]]\nfunction = "tell"\npoint = "all"\nsha256 = "TELL"',
            "all of tell has no code of its own",
        ),
        (
            '[[flow]]\nfunction = "tell"\nsum = { "point all" = 1 }\nmax = 0\nsha256 = "TELL"',
            "nothing that adds to its sum",
        ),
        (
            '[[flow]]\nfunction = "told"\nper = "call"\nsum = { "point here" = 1 }\nmax = 0\nsha256 = "TOLD"',
            "the function is inlined wherever it is called",
        ),
    ],
)
def test_what_the_compiler_left_no_code_of_has_no_effect_and_is_told(target, fact, why):
    """The statement is a call that was inlined, all of whose code is of the function that is called."""
    bound = proved(target, entry="tell", more=f'\n{fact}\nbecause = "it is so"\n')
    (idle,) = bound.idle_facts
    assert why in idle.why
    assert bound.flow_claims == ()
    assert proved(target, entry="twice", more=f'\n{fact}\nbecause = "it is so"\n').idle_facts == ()


@pytest.mark.parametrize(("target", "is_counted"), [("cortex-m4", False), ("arm926ej-s", False), ("mpc603e", True)])
def test_a_point_that_is_predicated_is_not_counted_as_often_as_its_block(target, is_counted):
    """On ARM the store is in the block of the loop, which is executed without it as well."""
    flow = 'function = "clear"\nsha256 = "CLEAR"\nsum = { "point linked" = 1 }\nmax = 1'
    free, limited = proved(target, entry="clear"), proved(target, flow, entry="clear")
    assert (limited.flow_claims != ()) == is_counted
    assert (limited.instructions < free.instructions) == is_counted


SPLIT = """\
volatile int port;
void part(int n) __asm__("mark.part.0");
static inline __attribute__((always_inline)) void mark(int n)
{
    /* point: marked */
    if (n > 3)
        part(n);
}
void f(int n)
{
    for (int i = 0; i < 20; i++) {
        port = n;
        mark(n);
        port = i;
    }
}
#line 6
__attribute__((noinline)) void part(int n) { port = n; port = n + 1; }
"""
"""As GCC splits a function whose condition is inlined, and whose other code is not (-O2)."""


@pytest.mark.parametrize("target", ["mpc603e", "cortex-m0plus"])
def test_what_is_split_off_a_function_is_no_copy_of_a_point(target):
    """The point is executed 20 times; with both of its blocks counted, half of the loop was left."""
    core = load_target(target)
    image = image_of(SPLIT, core, ".c")
    sources = {"guest.c": SPLIT.replace("#line 6\n", "")}
    instructions, index = decode(image), index_sources(sources)
    fact = f"""
[[flow]]
function = "mark"
sum = {{ "point marked" = 1 }}
max = 20
because = "each round marks once"
sha256 = "{index.function("mark").sha256}"
"""
    free, bound = (
        prove(BoundRequest(image, core, instructions, costs(instructions, core), "f", facts, sources, {}))
        for facts in (parse_facts("facts.toml", ""), parse_facts("facts.toml", fact))
    )
    assert (bound.instructions, bound.cycles) == (free.instructions, free.cycles)
    assert [len(one.blocks) for one in bound.flow_claims] == [1]


SKIPPED = """\
volatile int seen;
void f(int a, int b, int *p)
{
    if (a > b) {
        seen = a;
    } else if (a == b) {
        /* point: equal */
        *p = b;
    }
    seen = 4;
}
"""


@pytest.mark.parametrize(("target", "is_never"), [("cortex-m4", False), ("arm926ej-s", False), ("mpc603e", True)])
@pytest.mark.parametrize("place", ['point = "equal"', "line = 8"])
def test_a_block_that_is_executed_to_skip_a_place_is_not_infeasible(target, is_never, place, tmp_path, capsys):
    """Of ARM's code, a block is a store on a condition that the block before has tested."""
    image = image_of(SKIPPED, load_target(target), ".c")
    (tmp_path / "f.elf").write_bytes(image.elf)
    (tmp_path / "guest.c").write_text(SKIPPED)
    sha256 = index_sources({"guest.c": SKIPPED}).function("f").sha256
    fact = f'[[infeasible]]\nfunction = "f"\n{place}\nbecause = "they differ"\nsha256 = "{sha256}"\n'
    (tmp_path / "facts.toml").write_text(fact)
    command = ["bound", str(tmp_path / "f.elf"), "--entry", "f", "--target", target, "--source", str(tmp_path)]
    command += ["--facts", str(tmp_path / "facts.toml"), "--run", "f(1, 2, &seen)"]
    assert main([*command, "--json"]) == ExitCode.OK
    assert ("they differ" in capsys.readouterr().out) == is_never

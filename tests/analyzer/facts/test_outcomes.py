"""How often the condition of an ``if`` holds: which side of a branch that is, and sums of it."""

import pytest

from tests.support import TARGETS, image_of
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.facts.source_index import index_sources
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import UsageError
from wcet_probe.isa.decode import decode
from wcet_probe.isa.timing import costs
from wcet_probe.model.proof import Bound

SOURCE = """\
struct node { struct node *next; unsigned size; };

volatile unsigned sink;

__attribute__((noinline)) void tell(unsigned size)
{
    sink = size;
}

void least_of(struct node *node, unsigned limit)
{
    unsigned least = limit;
    while (node) { /* loop: walk */
        unsigned size = node->size;
        /* point: better */
        if (CONDITION) {
            /* point: told */
            tell(size);
            least = size;
        }
        node = node->next;
    }
}
"""
NEGATED = SOURCE.replace(
    "if (CONDITION) {", "if (size >= least) {\n            node = node->next;\n            continue;\n        } {"
)
LOOP = """
[[loop]]
function = "least_of"
label = "walk"
max = 100
because = "it is so"
sha256 = "HASH"
"""
FLOW = """
[[flow]]
function = "least_of"
sum = { "then better" = 1 }
max = 3
because = "it is so"
sha256 = "HASH"
"""


def proved(target_name: str, facts: str, condition: str, source: str = SOURCE) -> Bound:
    target = load_target(target_name)
    source = source.replace("CONDITION", condition)
    image = image_of(source, target, ".c")
    instructions = decode(image)
    digest = index_sources({"guest.c": source}).function("least_of").sha256
    told = parse_facts("facts.toml", facts.replace("HASH", digest))
    return prove(
        BoundRequest(
            image, target, instructions, costs(instructions, target), "least_of", told, {"guest.c": source}, {}
        )
    )


@pytest.mark.covering
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("condition", ["size < least", "least > node->size", "!size"])
def test_where_the_condition_holds_its_statement_is_executed(target, condition):
    free, then = proved(target, LOOP, condition), proved(target, LOOP + FLOW, condition)
    point = proved(target, LOOP + FLOW.replace("then better", "point told"), condition)
    assert then.instructions == point.instructions < free.instructions
    (claim,) = then.flow_claims
    assert (set(dict(claim.blocks).values()) <= {1, -1}, claim.constant) == (True, 3)


@pytest.mark.parametrize("target", TARGETS)
def test_where_a_negated_condition_holds_its_statement_is_not_executed(target):
    """At most three are worse, so that most are told: which side that is does not depend on the branch's direction."""
    point = proved(target, LOOP + FLOW.replace("then better", "point told"), "", source=NEGATED)
    then = proved(target, LOOP + FLOW, "", source=NEGATED)
    assert point.instructions < then.instructions <= proved(target, LOOP, "", source=NEGATED).instructions


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("size < least && size > 4", "is no `if` with one comparison"),
        (
            "node->size < node->next->size",
            "no branch on its line is known to compare what `node->size < node->next->size`",
        ),
    ],
)
def test_a_side_that_is_not_known_is_refused_or_left_out(condition, message):
    with pytest.raises(UsageError, match=message):
        proved("cortex-m4", LOOP + FLOW, condition)
    if "one comparison" not in message:
        left_out = proved("cortex-m4", LOOP + FLOW + "optional = true\n", condition)
        assert left_out.flow_claims == ()
        assert message in left_out.idle_facts[0].why


def test_a_macro_may_have_branches_of_its_own():
    """Of `PICK < least` the first branch compares with `least`, and is not the condition: 1,548 instead of 2,332."""
    source = "#define PICK (node->size < least ? sink + 1 : sink + 2)\n" + SOURCE
    with pytest.raises(UsageError, match="speaks of PICK, which may be a macro"):
        proved("cortex-m4", LOOP + FLOW, "PICK < least", source=source)


def test_a_negative_weight_is_refused():
    with pytest.raises(UsageError, match="has a negative weight"):
        proved("cortex-m4", LOOP + FLOW.replace('"then better" = 1', '"then better" = -1'), "size < least")


def test_a_condition_behind_other_code_on_its_line_is_none():
    text = "void f(int a, int b)\n{\n    for (; a < b;) /* point: one */ if (b < a)\n        a++;\n}\n"
    (point,) = index_sources({"f.c": text}).points("f")
    assert point.test is None
    (alone,) = index_sources({"f.c": text.replace("/* point: one */ ", "\n/* point: one */\n")}).points("f")
    assert alone.test is not None

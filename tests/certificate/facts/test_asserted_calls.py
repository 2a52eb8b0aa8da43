"""Calls whose targets facts tell: followed by offset and assumed; through a member it stays open which they are."""

from __future__ import annotations

import json
from dataclasses import replace
from unittest.mock import patch

import pytest

from tests.certificate.forgeries import graph_instead, sealed, solved_again
from tests.certificate.kernel.test_code import document_of
from tests.certificate.kernel.test_return_addresses import ASSUMED, LISTED, UNKNOWN, kept_at
from tests.support import assembler, guest_of
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.facts.binding import code_sha256
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.ipet.certificate import LoopDerivation
from wcet_probe.analyzer.ipet.flow_system import FlowLoop
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.facts.asserted import read_asserted
from wcet_probe.certificate.facts.findings import Binary
from wcet_probe.errors import VerificationError
from wcet_probe.reports.formats.bound_document import bound_section

CORES = ("cortex-m4", "arm926ej-s", "mpc603e")
SOURCE = """\
struct route { int gain; int (*handle)(int value, int gain); };
static struct route routes[4];
int leaf(int value, int gain) { return value * gain; }
int other(int value, int gain) { for (int i = 0; i < 9; i++) routes[i & 3].gain = value; return gain; }
void add(int i, int gain) { routes[i & 3] = (struct route){ gain, i & 4 ? leaf : other }; }
int f(int i, int value)
{
    const struct route *one = &routes[i & 3];
    return one->handle(value, one->gain) + 1;
}
"""
BOTH = ("leaf", "other")
SOURCES = {"guest.c": SOURCE}


@pytest.fixture(params=CORES)
def guest(request):
    return guest_of(SOURCE, load_target(request.param), ".c")


def fact(guest, targets, member=""):
    """A fact about the call in ``f``: by its offset, or through a member."""
    image, own = guest.image, guest.image.symbols["f"]
    code = [one for one in guest.instructions if own.address <= one.address < own.address + own.size_bytes]
    site = next(one.address for one in code if one.text.split(" ")[0] in {"blx", "bctrl"})
    by_offset = f'function = "f"\noffset = {site - own.address}\nsha256 = "{code_sha256(image, "f")}"'
    where = f'through = "{member}"' if member else by_offset
    return f'[[calls]]\n{where}\ntargets = {json.dumps(targets)}\nbecause = "add registers no other"\n'


def proved(guest, text):
    facts = parse_facts("facts.toml", text)
    asked = BoundRequest(guest.image, guest.target, guest.instructions, guest.costs, "f", facts, SOURCES, {})
    section = json.loads(json.dumps(bound_section(prove(asked))))
    return {"image": {"sha256": guest.image.sha256}, "target": guest.target.name, "bound": section}


def graph_of(guest, document, text):
    """What the checker finds of the graph, with ``text`` as the file of facts."""
    asserted = read_asserted([("facts.toml", text)], SOURCES)
    binary = Binary(guest.image, guest.instructions, guest.costs, guest.target, asserted, {})
    found = check_bound(sealed(document), binary).findings
    return next((one.verdict, one.found) for one in found if one.check == "graph")


def test_a_call_that_a_fact_names_by_offset_is_followed_and_assumed(guest):
    text = fact(guest, BOTH)
    document = proved(guest, text)
    assert graph_of(guest, document, text)[0] == "ok"

    assumed = document["bound"]["assumptions"]
    document["bound"]["assumptions"] = [one for one in assumed if not one["id"].startswith("fact ")]
    with pytest.raises(VerificationError, match=r"fact facts.toml:1 is used and not listed"):
        graph_of(guest, document, text)


def test_each_target_of_a_fact_is_in_the_graph(guest):
    document = proved(guest, fact(guest, ["leaf"]))
    assert graph_of(guest, document, fact(guest, ["leaf"]))[0] == "ok"
    with pytest.raises(VerificationError, match="the graph lacks the edge from f"):
        graph_of(guest, document, fact(guest, BOTH))


@pytest.mark.parametrize("targets", [["leaf", "another"], []])
def test_a_fact_without_functions_of_the_image_tells_nothing(guest, targets):
    document = proved(guest, fact(guest, ["leaf"]))
    verdict, found = graph_of(guest, document, fact(guest, targets))
    assert verdict == "not checked"
    assert "where the" in found


def test_of_calls_through_a_member_it_stays_open_which_they_are(guest):
    text = fact(guest, BOTH, "route.handle")
    document = proved(guest, text)
    verdict, found = graph_of(guest, document, text)
    assert verdict == "not checked"
    assert "goes through route.handle" in found
    assert "where the" not in found

    assert "where the" in graph_of(guest, document, fact(guest, ["leaf"], "route.handle"))[1]  # not what is listed
    listed = next(one for one in document["bound"]["assumptions"] if "route.handle" in one["statement"])
    listed["statement"] = listed["statement"].replace("f+0x", "f+0x1")
    assert "where the" in graph_of(guest, document, text)[1]


def test_a_fact_by_offset_tells_of_its_own_function_only(guest):
    """Of other code its hash says nothing, which may have changed since."""
    text = fact(guest, BOTH)
    document = proved(guest, text)
    image, own, other = guest.image, guest.image.symbols["f"], guest.image.symbols["other"]
    site = int(text.split("offset = ")[1].split("\n")[0])
    text = text.replace('"f"', '"other"').replace(f"offset = {site}", f"offset = {site + own.address - other.address}")
    text = text.replace(code_sha256(image, "f"), code_sha256(image, "other"))
    verdict, found = graph_of(guest, document, text)
    assert verdict == "not checked"
    assert "where the" in found


AGAIN = {
    "f": "bx lr",
    "g": "b top",
    "top": "adds r0, r0, #1\n subs r1, r1, #1\n beq 1f\n mov r2, sp\n ldr r3, [r2, r1]\n bx r3\n 1: bx lr",
}


@pytest.mark.covering(0)
@pytest.mark.parametrize("core", ["cortex-m0plus", "cortex-m4"])
def test_what_is_told_of_a_jump_by_what_may_be_a_stack_address_is_followed_wherever_rounds_are(core):
    """It looks like a return, which leads to no edge of its own function: no second round of the loop was seen."""
    guest = guest_of(assembler(AGAIN, load_target(core)), load_target(core))
    start = guest.image.symbols["top"].address
    offset = next(one.address for one in guest.instructions if one.text == "bx r3") - start
    text = f'[[calls]]\nfunction = "top"\noffset = {offset}\nsha256 = "{code_sha256(guest.image, "top")}"\n'
    text += 'targets = ["top"]\nbecause = "the words of the stack are its address"\n'

    def change(problem, _, followed):
        nodes = {"g": ("g", 0, 1), "top": ("top", 0, 3), "on": ("top", 6, 3), "out": ("top", offset + 2, 1)}
        edges = {"a:jump": ("g", "top"), "b:jump": ("top", "out"), "b:fall": ("top", "on"), "c:return": ("on", "top")}
        problem = graph_instead(problem, guest, nodes, edges, ["out"], cycles_each=400)
        numbers = {"max_header": 1, "offset": 0, "initial_low": 0, "initial_high": 0, "step": 1}
        limit = {"limit_low": 0, "limit_high": 0, "comparison": "<", "expression": None, "parameters": None}
        derivation = LoopDerivation(loop="L", constraint="loop:L", origin="proved", **numbers, **limit)
        said = kept_at(*nodes)
        said += [f"invariant {node} {place} {UNKNOWN}" for node in ("top", "on", "out") for place in ("r2", "r3")]
        loops = (FlowLoop("L", ("a:jump",), ("c:return",), 0),)
        return replace(problem, loops=loops), [derivation], said if followed or problem.unit == "instructions" else []

    document = solved_again(document_of(guest)[0], change)
    bound = document["bound"]
    told = {**LISTED, "id": "fact facts.toml:1", "statement": "the words of the stack are its address"}
    bound["assumptions"] += [told, *({**LISTED, "id": one} for one in sorted(ASSUMED))]
    bound |= {"entry": "g", "loops": [{"name": "L", "where": "", "max": 1, "origin": "proved"}]}
    binary = Binary(
        guest.image, guest.instructions, guest.costs, guest.target, read_asserted([("facts.toml", text)], {}), {}
    )
    with patch("wcet_probe.certificate.check.check_shown", return_value="nothing"):
        found = check_bound(sealed(document), binary).findings
    assert bound["instructions"] == 5
    assert [one.check for one in found if one.verdict != "ok"] == ["loop bounds"]

"""Calls whose targets facts tell: followed by offset and assumed; through a member it stays open which they are."""

from __future__ import annotations

import json

import pytest

from tests.certificate.forgeries import sealed
from tests.support import guest_of
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.facts.binding import code_sha256
from wcet_probe.analyzer.facts.file import parse_facts
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

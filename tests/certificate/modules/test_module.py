"""Module certificates: what the checker accepts, and that it refuses each that says more than follows."""

import re
from dataclasses import replace

import pytest

from tests.answer.facts.test_proved_facts import BROKEN, HEAP_BYTES, LIST, OTHERS, program
from tests.module_certificates import true_certificate
from wcet_probe.answer.bounds.module_certificate import _Search, module_certificate
from wcet_probe.certificate.facts.findings import OK
from wcet_probe.certificate.kernel.records import demand
from wcet_probe.certificate.modules.instruction_kinds import multiplied, otherwise, summed
from wcet_probe.certificate.modules.module import check_module, operation_of
from wcet_probe.certificate.modules.module_machine import ModuleMachine
from wcet_probe.certificate.values.congruences import Congruence
from wcet_probe.certificate.values.kinds import ANYTHING, Part, text_of, word, word_of
from wcet_probe.certificate.values.residues import ALL, members, of_class, residue
from wcet_probe.errors import AnalysisError, VerificationError
from wcet_probe.evidence.checking import allocator_binary

GIVEN = program("kingsley", multiple_of=4)
BINARY = allocator_binary(GIVEN, HEAP_BYTES)
TRUE = true_certificate(GIVEN, HEAP_BYTES)
POINTS = GIVEN.allocator.entry_points


def checked(document, binary=BINARY, points=POINTS):
    return check_module(document, replace(binary, entry_points=points)).findings


def refused(why, binary=BINARY, points=POINTS, **changes):
    with pytest.raises(VerificationError, match=why):
        checked({**TRUE, **changes}, binary, points)


def with_records(role, change):
    """The operations, the records of one of them changed line by line."""
    return [
        {**one, "certificate": "".join(change(one["certificate"].splitlines(keepends=True)))}
        if one["role"] == role
        else one
        for one in TRUE["operations"]
    ]


@pytest.mark.covering(0)
@pytest.mark.parametrize(
    ("name", "target"),
    [
        (name, target)
        for name in ("kingsley", "first-fit", "best-fit", "tlsf", "djgpp-sbrk", "djgpp-carve")
        for target in ("mpc603e", "cortex-m7", "arm926ej-s", "cortex-m4")
    ],
)
def test_allocators_are_checked_in_full_on_other_cores(name, target):
    given = program(name, target=target, multiple_of=4)
    document = module_certificate(given, HEAP_BYTES)
    found = check_module(document, allocator_binary(given, HEAP_BYTES)).findings
    assert {one.verdict for one in found} == {OK}
    assert document["facts"]


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_list_gets_no_certificate_of_its_alignment(name):
    try:
        document = module_certificate(program("first-fit", BROKEN[name]), HEAP_BYTES)
    except AnalysisError:
        return
    assert not document["facts"]


def test_a_true_certificate_is_checked_in_full():
    found = checked(TRUE)
    assert {one.verdict for one in found} == {OK}
    assert TRUE["facts"] == [{"where": "facts.toml:1", "accesses": 21}]


def stronger(parts):
    """Words that are less by one thing each: a part left out, not loaded, of half as many values, or of less reach."""
    for number, part in enumerate(parts):
        others = parts[:number] + parts[number + 1 :]
        if others:
            yield others
        if part.is_loaded and not any((one.kind, one.is_loaded) == (part.kind, False) for one in others):
            yield word((*others, part._replace(is_loaded=False)))
        for one in list(members(part.value)) if part.value.bit_count() > 1 and part.kind != "any" else ():
            yield word((*others, part._replace(value=part.value & ~residue(one))))
        low, high = part.reach or (0, 0)
        if low < high:
            yield word((*others, part._replace(reach=(low + 1, high))))
            yield word((*others, part._replace(reach=(low, high - 1))))


CELLS = [(name, text_of(one)) for name, text in TRUE["cells"].items() for one in stronger(word_of(text, demand))]
WORDS = [
    (operation["role"], line, f"{head} {text_of(one)}\n")
    for operation in TRUE["operations"]
    for line in operation["certificate"].splitlines(keepends=True)
    if line.startswith("word ")
    for head, text in [re.fullmatch(r"(word \S+ \S+) (.*)\n", line).groups()]
    for one in stronger(word_of(text, demand))
]


EVERY = pytest.mark.parametrize("step", [16, pytest.param(1, marks=pytest.mark.slow)])
"""All forgeries take a CPU minute; the ordinary run tries some of them."""


@EVERY
def test_no_cell_may_hold_less_than_is_stored(step):
    """The certificate is the least that holds, so that whatever is less does not."""
    assert len(CELLS) > 100
    for name, text in CELLS[::step]:
        refused(None, cells={**TRUE["cells"], name: text})


@EVERY
def test_no_place_may_be_made_of_less_than_arrives(step):
    assert len(WORDS) > 300
    accepted = []
    for role, old, new in WORDS[:: 4 * step - 3]:

        def forged(lines, old=old, new=new):
            return [new if one == old else one for one in lines]

        try:
            checked({**TRUE, "operations": with_records(role, forged)})
        except VerificationError:
            continue
        accepted.append((old, new))
    assert not accepted


def test_no_cell_may_be_left_out_and_none_may_tell_less_of_links():
    for name, text in TRUE["cells"].items():
        if "arena*" in text:
            if not name.startswith("static:"):  # a word without a cell of its own is one of the rest
                refused(None, cells={one: own for one, own in TRUE["cells"].items() if one != name})
            refused(None, cells={**TRUE["cells"], name: text.replace("arena*:8:0", "arena*:4:0")})


def test_the_block_that_malloc_returns_may_not_be_less_nor_more():
    refused("is not the block", block="arena:16:0:o0 null:64:0:o0")
    refused("is not the block", block="arena:8:0:o0")
    refused("not said to be a block", block="arena:8:0:o0 number:1:0:o0")
    refused("not known of the caller", block="arena:4:0:o0 null:64:0:o0")


def test_no_node_edge_or_way_out_may_be_left_out():
    for operation in TRUE["operations"]:
        for kind in ("node", "edge", "exit"):
            lines = [one for one in operation["certificate"].splitlines() if one.startswith(f"{kind} ")]
            for line in lines:
                name = line.split(" ")[1]

                def without(records, kind=kind, name=name):
                    own = [one for one in records if name not in one.split()] if kind == "node" else records
                    return [one for one in own if one.split()[:2] != [kind, name]]

                refused(None, operations=with_records(operation["role"], without))


def test_no_entry_point_may_be_left_out_or_be_another():
    for number in range(3):
        refused("the operations are not", operations=TRUE["operations"][:number] + TRUE["operations"][number + 1 :])
    init, malloc, free = TRUE["operations"]
    refused("another function", operations=[init, {**malloc, "certificate": free["certificate"]}, free])
    refused("tells nothing of an allocator with others", points={**POINTS, "realloc": "kingsley_malloc"})
    refused("another function", points={**POINTS, "free": "kingsley_check"})


def test_another_image_or_target_is_refused():
    other = program("kingsley", ("kingsley.c", "return bucket << 1;", "return (bucket << 1) + 4;"))
    refused("another image", allocator_binary(other, HEAP_BYTES))
    forged = {**TRUE, "image": {**TRUE["image"], "sha256": other.image.sha256}}
    with pytest.raises(VerificationError, match="another image"):
        checked(forged, allocator_binary(other, HEAP_BYTES))
    on = replace(BINARY, target=program("kingsley", target="e200z6").target)
    refused("another target", on)


def test_a_certificate_does_not_hold_of_a_changed_allocator():
    """A store that strays, in an image that the certificate is made to speak of."""
    change = "kingsley.c", LIST, LIST.replace("= k", "= (void *)((char *)k").replace(";", " + 2);")
    other = program("kingsley", change)
    sha256 = GIVEN.image.sha256, other.image.sha256
    forged = [{**one, "certificate": one["certificate"].replace(*sha256)} for one in TRUE["operations"]]
    refused(None, allocator_binary(other, HEAP_BYTES), operations=forged, image={"sha256": sha256[1]})


def test_a_fact_is_not_told_where_it_does_not_hold():
    refused("speaks of 21 accesses, not of 20", facts=[{"where": "facts.toml:1", "accesses": 20}])
    refused("a fact is told that there is not", facts=[{"where": "facts.toml:9", "accesses": 21}])
    asserts_more = allocator_binary(program("kingsley"), HEAP_BYTES)
    refused("the fact facts.toml:1 does not hold at kingsley_", asserts_more)
    untold = checked({**TRUE, "facts": []})
    assert [one.check for one in untold if one.verdict != OK] == ["alignment of facts.toml:1"]


def test_what_is_taken_for_granted_must_be_listed():
    for one in TRUE["assumptions"]:
        others = [each for each in TRUE["assumptions"] if each != one]
        refused("assumption", assumptions=others)
        if not one["id"].startswith(("no-", "stack-", "return-")):
            refused("told otherwise", assumptions=[*others, {**one, "statement": "nothing"}])


def test_what_is_said_where_an_operation_begins_must_be_known_of_the_caller():
    entry = next(one for one in TRUE["operations"][0]["certificate"].splitlines() if one.startswith("entry "))
    node = entry.split()[1]
    for place, text in {"r3": "arena:8:0:o0", "r9": "number:1:0:o0", "stack:-8": "arena:8:0:o0"}.items():
        line = f"word {node} {place} {text}\n"
        records = with_records(
            "init", lambda lines, line=line: [one for one in lines if not one.startswith(line[:-20])] + [line]
        )
        refused("not known of the caller|two words", operations=records)


def test_what_an_instruction_makes_is_told_of_sums_only_where_it_is_known_to_be_none():
    link, number = (Part("arena", True, of_class(Congruence(8, 0))),), (Part("number", False, ALL),)
    assert otherwise([link, number]) == ANYTHING
    assert otherwise([]) == ANYTHING
    assert [part.kind for part in otherwise([number, number])] == ["number"]
    assert summed("neg", [(link, None), (link, None)]) == ANYTHING
    assert summed("clz", [(link, None)]) is None
    rotated = [(number, None), (number, 0), (number, 30), (number, 1)]
    assert multiplied("rlwinm", rotated) is None
    assert multiplied("rlwinm", [*rotated[:2], (number, 0), (number, 28)]) == (
        Part("number", False, of_class(Congruence(8, 0))),
    )


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("heap", "null:64:0:o0", "is no cell"),
        ("arena:2", "null:64:0:o0", "is no word"),
        ("arena:64", "null:64:0:o0", "is no word"),
        ("static:0x400002", "null:64:0:o0", "is no word"),
        ("arena:0", "link:8:0:o0", "is no part"),
        ("arena:0", "arena:6:0:o0", "is not how its part is written"),
        ("arena:0", "arena:8:9:o0", "is not how its part is written"),
        ("arena:0", "arena:8:0,4:o0", "is not how its part is written"),
        ("arena:0", "arena:8:0:o64", "is not how its part is written"),
        ("arena:0", "arena:128:0:o0", "is no part"),
        ("arena:0", "null:64:0:o0 arena:8:0:o0", "is no word"),
        ("arena:0", "", "is no word"),
    ],
)
def test_a_cell_is_written_in_one_way(name, text, why):
    refused(why, cells={**TRUE["cells"], name: text})


@pytest.mark.covering(0)
@pytest.mark.parametrize(
    "name", [name for name, (one, *_) in OTHERS.items() if one in {"kingsley", "djgpp-sbrk", "djgpp-carve"}]
)
def test_a_broken_allocator_gets_no_certificate_of_its_alignment(name):
    allocator, *change = OTHERS[name]
    broken = program(allocator, change, multiple_of=4)
    try:
        document = module_certificate(broken, HEAP_BYTES)
    except AnalysisError:  # the address of a store is not known
        return
    assert not document["facts"]


SEARCH = "    size_t bucket = 0;\n    /* loop: search */"
SET_FROM_ARGUMENT = (
    "kingsley.c",
    SEARCH,
    f"    if (bytes == 13) kingsley_control.top = (unsigned char *)bytes;\n{SEARCH}",
)


def test_that_a_known_word_is_told_with_others_leaves_no_more_to_the_lemmas(monkeypatch):
    """The lemmas speak of computed places; which these are depends on the code, and not on what a certificate tells."""
    broken = program("kingsley", SET_FROM_ARGUMENT, multiple_of=4)
    with pytest.raises(AnalysisError, match="where the store at"):
        module_certificate(broken, HEAP_BYTES)
    monkeypatch.setattr("wcet_probe.answer.bounds.module_certificate._Seeing._of_static", ModuleMachine._of_static)
    with pytest.raises(AnalysisError, match="where the store at"):
        module_certificate(broken, HEAP_BYTES)


def test_that_a_known_address_is_not_told_leaves_no_more_to_the_lemmas(monkeypatch):
    """As if the certificate told nothing of registers that hold addresses of static data, but that they are these."""
    broken = program("kingsley", SET_FROM_ARGUMENT, multiple_of=4)
    known = operation_of

    def forgetful(role, records):
        found = known(role, records)
        invariants = {
            node: {place: value for place, value in own.items() if not 0x400000 <= value.low < 0x401000}
            for node, own in found.said.invariants.items()
        }
        return replace(found, said=found.said._replace(invariants=invariants))

    monkeypatch.setattr("wcet_probe.answer.bounds.module_certificate.operation_of", forgetful)
    with pytest.raises(AnalysisError, match="where the store at"):
        module_certificate(broken, HEAP_BYTES)


USED = "    block->tag = used_tag(bucket);\n    return"


@pytest.mark.covering(0)
@pytest.mark.parametrize(
    "added",
    [
        "lis %0, kingsley_control@ha\\n addi %0, %0, kingsley_control@l\\n add %0, %0, %1",
        "addis %0, %1, kingsley_control@ha\\n addi %0, %0, kingsley_control@l",
        "lis %0, kingsley_control@ha\\n adde %0, %0, %1",
    ],
)
def test_a_number_that_an_address_is_added_to_is_no_number(added):
    """By whatever instruction: else the lemmas would say that the sum, which is misaligned, is not followed."""
    odd = f'__asm__("{added}" : "=&b"(odd) : "b"(bucket & 2));'
    place = "volatile size_t *volatile *place = (void *)((char *)block + 8), *odd;"
    used = "*place = bytes & 1 ? (void *)&kingsley_control : odd; (void)**place;"
    change = "kingsley.c", USED, f"    {place} {odd} {used}\n{USED}"
    try:
        document = module_certificate(program("kingsley", change, multiple_of=4), HEAP_BYTES)
    except AnalysisError:
        return
    assert not document["facts"]


PUSH = "    kingsley_control.heads[bucket] = block;"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (PUSH, PUSH.replace("= block", "= *(struct kingsley_block **)payload")),
        (LIST, f"{LIST} *(volatile unsigned char *)&block->next = 1;"),
    ],
)
def test_what_the_caller_wrote_and_parts_of_words_are_no_links(old, new):
    try:
        document = module_certificate(program("kingsley", ("kingsley.c", old, new), multiple_of=4), HEAP_BYTES)
    except AnalysisError:  # the address of a store is not known
        return
    assert not document["facts"]


def test_a_store_that_goes_nobody_knows_where_is_refused(monkeypatch):
    """Though the one who wrote the certificate did not mind."""
    iterate = _Search._iterate

    def careless(self, cells):
        iterate(self, cells)
        self.unknown.clear()

    monkeypatch.setattr(_Search, "_iterate", careless)
    monkeypatch.setattr("wcet_probe.answer.bounds.module_certificate._Growing.store", ModuleMachine.store)
    strays = f"    if (bytes == 13) *(volatile size_t *)bytes = 1;\n{SEARCH}"
    broken = program("kingsley", ("kingsley.c", SEARCH, strays), multiple_of=4)
    document = module_certificate(broken, HEAP_BYTES)
    with pytest.raises(VerificationError, match="where the store at kingsley_malloc"):
        check_module(document, allocator_binary(broken, HEAP_BYTES))


def test_the_words_of_the_image_are_in_the_cells():
    """The start of the arena is null before the first call of init, and nobody loads it."""
    name = "static:0x400000"
    parts = tuple(part for part in word_of(TRUE["cells"][name], demand) if part.kind != "null")
    refused("the image holds at 0x400000", cells={**TRUE["cells"], name: text_of(parts)})


def test_an_index_of_the_stack_is_no_multiple():
    change = "kingsley.c", LIST, f"volatile unsigned char path[64]; (void)path[block->tag]; {LIST}"
    assert not module_certificate(program("kingsley", change, multiple_of=4), HEAP_BYTES)["facts"]


def test_call_returns_names_the_panics_of_all_operations():
    """The statement was that of the last operation: what the others leave out would be left open."""
    change = "kingsley.c", "    return bucket << 1;", "    if (bucket > 77) for (;;) { }\n    return bucket << 1;"
    given = program("kingsley", change, target="cortex-m4", multiple_of=4)
    document = module_certificate(given, HEAP_BYTES)
    (listed,) = [one["statement"] for one in document["assumptions"] if one["id"] == "call-returns"]
    assert "malloc+0x" in listed
    assert "free+0x" in listed
    found = check_module(document, allocator_binary(given, HEAP_BYTES)).findings
    assert {one.verdict for one in found} == {OK}

    document["assumptions"] = [
        {**one, "statement": one["statement"].replace("free+0x", "free+0x1")} for one in document["assumptions"]
    ]
    found = check_module(document, allocator_binary(given, HEAP_BYTES)).findings
    assert next(one.check for one in found if one.verdict != OK) == "graphs"

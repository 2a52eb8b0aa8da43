"""Alignments that flow facts assert are proved from what operations store, and are not where an allocator is broken."""

from dataclasses import replace

import pytest

from tests.support import images_dir
from wcet_probe.analyzer.facts.source_loops import parse_source
from wcet_probe.answer.facts.proved_facts import proved_facts
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator, load_target

HEAP_BYTES = 5000
FACT = '[[pointer]]\nmultiple_of = 8\nbecause = "it is to be proved"\n'
LOOPS = {
    "avl-best-fit": (
        ("release", "descent", 10),
        ("grown", "grow", 9),
        ("descend", "descent", 10),
        ("shrunk", "shrink", 9),
    )
}
"""Of allocators that keep on their stack what they load at a computed place: the loops that tell where it ends."""
FIND = "    struct bt_block *block = find("
LINKED = "    node->prev = place;\n    place->next->prev"
UNLINKED = "    node->prev->next = node->next;\n"
BROKEN = {
    "a link stored with an offset": ("dlist.h", LINKED, LINKED.replace("= place", "= (void *)((char *)place + 4)")),
    "a wrong mask": ("boundary_tags.h", "block->header & ~BT_FREE_BIT;", "block->header & ~(size_t)2;"),
    "a header from the payload": ("boundary_tags.h", "(struct bt_block *)payload - 1;", "(struct bt_block *)payload;"),
    "an arena that is not aligned": ("list_fit.h", "(uintptr_t)arena % BT_OVERHEAD != 0 || ", ""),
    "sizes that are not rounded": ("boundary_tags.h", "& ~(alignment - 1);", "& ~(alignment / 2 - 1);"),
    "a link computed from another": (
        "dlist.h",
        UNLINKED,
        UNLINKED.replace("node->next;", "(void *)((char *)node->next + ((size_t)node->prev >> 4 & 4));"),
    ),
} | {
    name: ("first_fit.c", FIND, f"    if (bytes == 13)\n        {line}\n{FIND}")
    for name, line in {
        "a list's head set from an argument": "first_fit_control.free.next = (void *)bytes;",
        "a store through an argument": "*(volatile size_t *)bytes = 1;",
        "a block in static data": "return &first_fit_control;",
        "a block from a low constant": "return *(void *volatile *)64;",
        "a link from a low constant": "first_fit_control.free.next = *(void *volatile *)16;",
        "a store through a low constant's word": "**(size_t *volatile *)16 = 1;",
        "a byte of a link": "*(volatile unsigned char *)first_fit_control.free.next = 1;",
    }.items()
}


LIST = "block->next = kingsley_control.heads[bucket];"
OTHERS = {
    "a link stored with an offset": (
        "kingsley",
        "kingsley.c",
        LIST,
        LIST.replace("= k", "= (void *)((char *)k").replace(";", " + 2);"),
    ),
    "a link with a bit of a word": (
        "kingsley",
        "kingsley.c",
        LIST,
        "{ static volatile size_t odd; void *link = block->next; if (link != NULL)\n"
        "    (void)*(volatile size_t *)link, (void)*(volatile char *)((size_t)link | odd); odd = 2; }" + LIST,
    ),
    "a break that is moved wrongly": ("djgpp-quarters", "djgpp_buckets.h", "= old + bytes;", "= old + bytes / 3;"),
    "a break from the payload": (
        "djgpp-quarters",
        "djgpp_quarters.c",
        ".brk = start;",
        ".brk = *(unsigned char **)payload;",
    ),
    "a bitmap added to a link": (
        "tlsf",
        "tlsf.c",
        "block->next_free = head;",
        "block->next_free = (void *)((char *)head + (tlsf_control.fl_bitmap & 2));",
    ),
    "a rest that is too small": ("tlsf", "tlsf.c", "(rest, spare - TLSF_HEADER_BYTES)", "(rest, spare - 2)"),
    "a least bucket that is too small": (
        "djgpp-sbrk",
        "djgpp_sbrk.c",
        "sized < DJGPP_SBRK_LEAST_SIZE ? DJGPP_SBRK_LEAST_SIZE : sized",
        "sized < 2 ? 2 : sized",
    ),
    "steps that are counted wrongly": ("djgpp-sbrk", "djgpp_buckets.h", "log += step;", "log += step / 4;"),
    "a carved block linked with an offset": (
        "djgpp-carve",
        "djgpp_carve.c",
        "*link = block;",
        "*link = (void *)(place + 2);",
    ),
    "a block remembered with an offset": (
        "best-fit",
        "best_fit.c",
        "best = bt_block_of(node);",
        "best = (void *)((char *)bt_block_of(node) + 2);",
    ),
    "no null in the beginning": ("best-fit", "best_fit.c", "*best = NULL;", "*best = (void *)2;"),
    **{
        name: ("quick-fit", "quick_fit.c", old, old.replace(*change) if isinstance(change, tuple) else change)
        for name, old, change in (
            ("fragments beside their places", "(start + offset));", ("offset)", "offset + 2)")),
            (
                "pages of another size",
                "- 1) * QUICK_FIT_PAGE_BYTES;",
                ("QUICK_FIT_PAGE_BYTES", "(QUICK_FIT_PAGE_BYTES + 2)"),
            ),
            ("a first page that is moved", "bytes - pages * QUICK_FIT_PAGE_BYTES;", ("BYTES", "BYTES - pages")),
            (
                "a header between two",
                "return run + rest;",
                ("run + rest", "(page_t *)(void *)((char *)(run + rest) + 2)"),
            ),
            ("an arena at any address", "(((uintptr_t)arena | bytes) &", "(bytes &"),
            (
                "a wrong word in the image",
                "{&quick_fit_control.list, &",
                "{(void *)((char *)&quick_fit_control.list + 2), &",
            ),
            (
                "a link more its count",
                "page->free.first = fragment;",
                "page->free.first = (void *)((char *)fragment + page->count);",
            ),
            (
                "a first link between two",
                "page->free.first = list->next;\n    return (",
                "page->free.first = (void *)((char *)list->next + 2);\n    return (",
            ),
            (
                "a list between two",
                "&quick_fit_control.lists[page->kind], f",
                "(void *)((char *)quick_fit_control.lists + page->kind * 2), f",
            ),
            (
                "the header of a run's end between two",
                "page_t *last = first + (pages - 1);",
                "page_t *last = (void *)((char *)(first + pages - 1) + 2);",
            ),
            (
                "a header of a page's part",
                "return quick_fit_control.headers + 1 + offset / QUICK_FIT_PAGE_BYTES;",
                "return (void *)((char *)(quick_fit_control.headers + 1) + offset / (QUICK_FIT_PAGE_BYTES / 16));",
            ),
            (
                "a rover from an argument",
                "page_t *run = take_pages(pages);",
                "page_t *run;\n    quick_fit_control.rover = (page_t *)bytes;\n    run = take_pages(pages);",
            ),
        )
    },
    **{
        name: ("avl-best-fit", "avl_best_fit.c", old, new)
        for name, old, new in (
            (
                "a node beside its place on the path",
                "path->nodes[++depth] = node;",
                "path->nodes[++depth] = (void *)((char *)node + 2);",
            ),
            ("an argument on the path", "path.nodes[at] = heir;", "path.nodes[at] = (void *)size;"),
            (
                "an address of the stack on the path",
                "path.nodes[at] = heir;",
                "path.nodes[at] = (void *)&path.nodes[1];",
            ),
            (
                "a path that is read behind its end",
                "block_t *above = path->nodes[--depth];",
                "block_t *above = path->nodes[--depth + 40];",
            ),
            ("a child between two", "*link_to(&path, at) = heir;", "*link_to(&path, at) = (void *)((char *)heir + 2);"),
            (
                "a size with half of the state",
                "return block->size_and_state & ~AVL_BEST_FIT_STATE_MASK;",
                "return block->size_and_state & ~(size_t)1;",
            ),
        )
    },
    **{
        name: ("budgeted:tlsf", "budgeted.c", old, new)
        for name, old, new in (
            ("a heap that is refused and used", "bytes - dedicated) != 0)\n", "bytes - dedicated) == -2)\n"),
            ("a heap that is used where it is refused", "bytes - dedicated) != 0)\n", "bytes - dedicated) == 0)\n"),
            ("another size than is checked", "arena, bytes - dedicated)", "arena, (bytes - dedicated) & ~7u)"),
            ("buckets beside their place", "base + bytes - dedicated;", "base + bytes - dedicated - 2;"),
        )
    },
    **{
        name: ("djgpp-cached", file, old, new)
        for name, file, old, new in (
            (
                "a node in its bin with an offset",
                "djgpp_cached.c",
                "        *bin = node;\n",
                "        *bin = (void *)((char *)node + 2);\n",
            ),
            (
                "a list between two by the number that a node keeps",
                "djgpp_tags.h",
                "link = &heap->heads[djgpp_tags_bucket_of(block)];",
                "link = (void *)((char *)heap->heads + djgpp_tags_bucket_of(block) * 2);",
            ),
            (
                "a size more the number of its list",
                "djgpp_tags.h",
                "    node->bucket = bucket;\n",
                "    node->bucket = bucket;\n    block->header += bucket << 1;\n",
            ),
            (
                "a rest more the number of a list",
                "djgpp_tags.h",
                "    heap->rest = bt_next(block);\n",
                "    heap->rest = bt_behind(bt_next(block), djgpp_tags_bucket(size) & 2);\n",
            ),
            (
                "sizes that are multiples of 2",
                "boundary_tags.h",
                "& ~(alignment - 1);",
                "& ~(alignment / 4 - 1);",
            ),
        )
    },
    "a check that some sizes pass by": (
        "budgeted:tlsf",
        "tlsf.c",
        "    if (arena == NULL || (((uintptr_t)arena | bytes)",
        "    if (bytes == 777)\n        return 0;\n    if (arena == NULL || (((uintptr_t)arena | bytes)",
    ),
    "a table with a wrong size": ("buddy-fibonacci", "buddy_fibonacci.c", "377 * M,", "377 * M + 2,"),
    "a size behind the table's word": (
        "buddy-fibonacci",
        "buddy_fibonacci.c",
        "bytes_of[class_of(tag) - 1]);",
        "*(const size_t *)(const void *)((const char *)&bytes_of[class_of(tag) - 1] + 2));",
    ),
}


def program(name, change=None, target="mpc603e", multiple_of=8):
    allocator = load_allocator(name)
    sources = allocator.sources
    if change is not None:
        file, old, new = change
        assert sum(text.count(old) for own, text in sources if own == file) == 1, (file, old)
        sources = tuple((own, text.replace(old, new) if own == file else text) for own, text in sources)
    hashes = {own.name: own.sha256 for file, text in sources for own in parse_source(file, text).functions}
    loops = (
        f'[[loop]]\nfunction = "{function}"\nlabel = "{label}"\nmax = {most}\nsha256 = "{hashes[function]}"\n'
        f'because = "a tree of ten levels"\n'
        for function, label, most in LOOPS.get(name, ())
    )
    facts = (("facts.toml", FACT.replace("8", str(multiple_of)) + "".join(loops)),)
    return load_program(replace(allocator, sources=sources, facts=facts), load_target(target), "zig", images_dir())


def test_the_alignment_of_first_fits_links_is_proved():
    found = proved_facts(program("first-fit"), HEAP_BYTES)
    assert [claim.is_proved for claim in found.claims] == [True]
    assert not found.why_not


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({allocator for allocator, *_ in OTHERS.values()}))
def test_what_is_broken_below_is_proved_as_it_is(name):
    claims = proved_facts(program(name, multiple_of=4), HEAP_BYTES).claims
    assert claims
    assert all(claim.is_proved for claim in claims)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["buddy-binary", "quick-fit"])
def test_thumb_code_of_tables_of_heads_is_proved_too(name):
    """Beside a table whose end the bits of its index tell are numbers, no links; an arena's low bits are shifted up."""
    found = proved_facts(program(name, target="cortex-m7", multiple_of=4), HEAP_BYTES)
    assert found.claims, found.why_not
    assert all(claim.is_proved for claim in found.claims)


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_allocator_proves_nothing(name):
    found = proved_facts(program("first-fit", BROKEN[name]), HEAP_BYTES)
    assert found.why_not or found.claims
    assert not any(claim.is_proved for claim in found.claims), name


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_other_broken_allocators_prove_nothing(name):
    """Where nothing but blocks and heads of lists is at addresses that facts speak of."""
    allocator, *change = OTHERS[name]
    found = proved_facts(program(allocator, change, multiple_of=4), HEAP_BYTES)
    assert found.why_not or found.claims
    assert not any(claim.is_proved for claim in found.claims), name


def test_an_index_of_the_stack_is_no_proved_multiple():
    """A bound takes it for one, as of all numbers of which it knows nothing."""
    change = "kingsley.c", LIST, f"volatile unsigned char path[64]; (void)path[block->tag]; {LIST}"
    (claim,) = proved_facts(program("kingsley", change, multiple_of=4), HEAP_BYTES).claims
    assert {why for _, why in claim.open_accesses} == {
        "its address may be on the stack, of which words are not told by residues"
    }


def test_what_is_open_is_named():
    found = proved_facts(program("first-fit", BROKEN["a link stored with an offset"]), HEAP_BYTES)
    (claim,) = found.claims
    assert claim.open_accesses
    assert "it may be an address in static data that is 12 modulo 64" in {why for _, why in claim.open_accesses}


def test_entry_points_that_are_not_analysed_prevent_a_proof():
    given = program("first-fit")
    points = {**given.allocator.entry_points, "realloc": "first_fit_free"}
    found = proved_facts(replace(given, allocator=replace(given.allocator, entry_points=points)), HEAP_BYTES)
    assert not found.claims
    assert "realloc" in found.why_not

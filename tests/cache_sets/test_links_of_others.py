"""Other allocators than CAMA with links in the arena: nothing follows of them that the lemmas do not say.

Tests: cache_sets.specification.
"""

from dataclasses import replace

import pytest

from tests.support import images_dir
from wcet_probe.build.program import load_program
from wcet_probe.cache_sets.specification import allowed_sets, prove_sets
from wcet_probe.catalog.lookup import load_allocator, load_target

HEAP_BYTES = 64 << 10
HEAD = '#include "cama.h"\n'
CHECK = f"{HEAD}int cama_check(void)\n{{\n    return 0;\n}}\n"
STEPS = """
_Alignas(4096) static struct { char *fresh; char *base; } pool;

int cama_init(void *arena, size_t bytes)
{
    pool.fresh = (char *)(((uintptr_t)arena + START) & ~(uintptr_t)MASK);
    pool.base = (char *)(((uintptr_t)arena + 4095) & ~(uintptr_t)4095);
    return bytes < 8192;
}

void *cama_malloc(size_t bytes, unsigned set)
{
    char *one = pool.fresh;

    (void)bytes;
    if (set < PLACES)
        *(volatile uint32_t *)(pool.base + 4 * set) = 1;
    pool.fresh = one + 128;
    if ((((uintptr_t)one + 128) & 4095) != 1024)
        *(volatile uint32_t *)(one + 128) = 1;
    return NULL;
}

void cama_free(void *block)
{
    (void)block;
}
"""
PAGES = """
struct node { struct node *next; uint32_t key; };
_Alignas(4096) struct { uint32_t unused[4]; uintptr_t page; struct node *base; } pool;

int cama_init(void *arena, size_t bytes)
{
    uintptr_t page = ((uintptr_t)arena + 4095) & ~(uintptr_t)4095;

    if (bytes < 8192)
        return 1;
    pool.page = page >> 12;
    pool.base = (struct node *)page;
    pool.base->next = (struct node *)(page + 64);
    return 0;
}

void *cama_malloc(size_t bytes, unsigned set)
{
    (void)bytes, (void)set;
    *(volatile uint32_t *)&pool.base->next->key = 1;
    return NULL;
}

void cama_free(void *block)
{
    (void)block;
    *(struct node *volatile *)WHERE = (struct node *)((char *)pool.base + BEHIND);
}
"""
HEADS = """
struct node { struct node *next; uint32_t key; };
_Alignas(4096) struct { struct node *volatile first; struct node *volatile other; struct node *base; } pool;

int cama_init(void *arena, size_t bytes)
{
    pool.base = (struct node *)(((uintptr_t)arena + 4095) & ~(uintptr_t)4095);
    pool.first = NULL;
    pool.other = NULL;
    return bytes < 8192;
}

void *cama_malloc(size_t bytes, unsigned set)
{
    struct node *one = pool.first;

    (void)bytes, (void)set;
    if (TEST)
        *(volatile uint32_t *)&one->key = 1;
    if (AGAIN)
        *(volatile uint32_t *)&one->key = 2;
    return NULL;
}

void cama_free(void *block)
{
    pool.first = pool.base;
    pool.other = pool.base;
    if (block != NULL)
        pool.first = NULL;
    else
        pool.other = NULL;
}
"""


def proof_of(text, role="malloc"):
    allocator = load_allocator("cama")
    own = {"cama.c": HEAD + text, "cama_check.c": CHECK}
    sources = tuple((name, own.get(name, before)) for name, before in allocator.sources)
    one = replace(allocator, sources=sources, facts=())
    program = load_program(one, load_target("mpc603e"), "zig", images_dir())
    return prove_sets(program, role, (HEAP_BYTES,), allowed_sets(program))


def steps(mask, places=256):
    return STEPS.replace("START", mask).replace("MASK", mask).replace("PLACES", str(places))


def test_what_is_advanced_from_elsewhere_is_not_taken_to_the_area():
    """The lemma speaks of addresses in the allowed sets; an arena may begin elsewhere."""
    assert proof_of(steps("4095")).holds
    assert not proof_of(steps("127")).holds


def test_a_table_may_end_behind_the_area():
    """What is at the end is not followed: that is no table's word."""
    assert not proof_of(steps("4095", 280)).holds


def test_a_page_number_leads_back_into_the_arena():
    """What is stored through it is loaded through a link."""
    assert proof_of(PAGES.replace("WHERE", "pool.base").replace("BEHIND", "128")).holds
    assert not proof_of(PAGES.replace("WHERE", "pool.base").replace("BEHIND", "2048")).holds
    assert not proof_of(PAGES.replace("WHERE", "(pool.page << 12)").replace("BEHIND", "2048")).holds


def lemmas_of(test, again="0"):
    """The ids of the lemmas, and how many instructions follow what may be null."""
    proof = proof_of(HEADS.replace("TEST", test).replace("AGAIN", again))
    assert proof.holds
    sites = [site for site in proof.sites if site.lemma == "null-is-not-followed"]
    return [lemma.id for lemma in proof.lemmas], len(sites)


def test_a_lemma_is_not_told_where_nothing_rests_on_it():
    """Nothing is loaded from the arena, nothing is advanced, and the head is followed where it is not null."""
    assert lemmas_of("one != NULL") == (["objects-apart"], 0)


@pytest.mark.parametrize("test", ["pool.other != NULL", "set != 5"])
def test_a_head_that_is_followed_without_its_own_test_may_be_null(test):
    assert lemmas_of(test) == (["objects-apart", "null-is-not-followed"], 1)


def test_what_was_followed_is_not_null_behind_that():
    """Nor is it on a way on which it was compared; where one way leads by neither there is another place."""
    assert lemmas_of("set != 5", "set != 5")[1] == 1
    assert lemmas_of("set != 5", "set > 2")[1] == 2
    assert lemmas_of("one != NULL", "set > 2 && one != NULL")[1] == 0


@pytest.mark.parametrize(("test", "places"), [("1", 1), ("one != NULL", 0)])
def test_what_was_followed_in_one_round_may_be_null_in_the_next(test, places):
    """The head is compared before the loop; the links in it are not, or are."""
    body = f"if ({test}) {{\n*(volatile uint32_t *)&one->key = i;\none = one->next;\n}}"
    walk = f"if (one != NULL)\nfor (unsigned i = bytes & 7; i != 0; i--)\n{body}\nif (0)"
    text = HEADS.replace("struct node *next;", "struct node *volatile next;").replace("(void)bytes, ", "")
    text = text.replace("if (AGAIN)", walk).replace("TEST", "0")
    cut = "pool.base->next = pool.base;\nif ((uintptr_t)block & 8)\npool.base->next = NULL;"
    proof = proof_of(text.replace("pool.other = pool.base;", cut))
    assert proof.holds
    assert len([site for site in proof.sites if site.lemma == "null-is-not-followed"]) == places


@pytest.mark.parametrize(("block", "lemmas"), [("NULL", []), ("pool.block", ["objects-apart"])])
def test_a_block_of_the_arena_lies_in_it_by_a_lemma(block, lemmas):
    """All words are in static data here; the caller writes into the block."""
    text = HEADS.replace("pool;", "pool;\nstatic struct node node;", 1).replace("*base; }", "*base; char *block; }")
    text = text.replace("pool.base = (struct node *)(", "pool.base = &node;\n    pool.block = (char *)(")
    text = text.replace("return NULL;", f"return {block};", 1).replace("TEST", "set != 5").replace("AGAIN", "0")
    proof = proof_of(text)
    assert proof.holds
    assert [lemma.id for lemma in proof.lemmas] == [*lemmas, "null-is-not-followed"]

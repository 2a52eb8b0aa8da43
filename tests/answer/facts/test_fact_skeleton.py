"""All missing facts at once, in lines that are accepted; and hashes that are brought up to date after a look."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import image_of
from wcet_probe.answer.facts import fact_skeleton
from wcet_probe.catalog.lookup import load_target
from wcet_probe.cli.app import main
from wcet_probe.errors import ExitCode

SOURCE = """\
struct node { struct node *next; int value; };
struct node *volatile head;
int (*volatile handler)(int);
int leaf(int x) { return x + 1; }
int depth(int n) { return n <= 0 ? 0 : n + depth(head ? n - head->value : 0) / 3; }
int walk(int n)
{
    int sum = 0;
    for (struct node *at = head; at; at = at->next)
        sum += at->value;
    sum += handler(sum);
    /* loop: second */
    for (struct node *at = head; at != (struct node *)sum; at = at->next)
        sum ^= at->value;
    for (int i = 0; i < n; i++)
        sum += head->value;
    return sum + depth(sum);
}
"""
ANSWERS = {"targets": '["leaf"]', "max": "3", "max_depth": "2", "because": '"so it is"'}


@pytest.fixture
def tool(tmp_path, monkeypatch, capsys):
    """The tool in a folder with the program; its exit code and what it printed."""
    monkeypatch.chdir(tmp_path)
    write(SOURCE, "cortex-m4")

    def ask(*words: str) -> tuple[int, str, str]:
        code = main([*words, "-q"])
        return code, *capsys.readouterr()

    return ask


def write(source: str, target: str) -> None:
    Path("guest.c").write_text(source, "utf-8")
    Path("f.elf").write_bytes(image_of(source, load_target(target), ".c").elf)


def filled(text: str) -> str:
    return re.sub(r'^(\w+) = \[?"\?"\]?$', lambda found: f"{found[1]} = {ANSWERS[found[1]]}", text, flags=re.MULTILINE)


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", ["cortex-m4", "mpc603e"])
def test_all_that_is_missing_is_told_at_once_and_accepted_when_it_is_answered(target, tool):
    write(SOURCE, target)
    code, text, _ = tool("facts", "f.elf", "--entry", "walk", "--target", target)
    assert code == ExitCode.OK
    tables = re.findall(r"^\[\[(\w+)\]\]", text, re.MULTILINE)
    assert tables.count("calls") == 1
    assert tables.count("loop") + tables.count("recursion") >= 4
    assert text.count("#| int walk(int n)") == 1
    assert 'label = "second"' in text
    Path("facts.toml").write_text(text, "utf-8")
    bound = ("bound", "f.elf", "--entry", "walk", "--target", target, "--facts", "facts.toml")
    code, _, error = tool(*bound)
    assert code == ExitCode.USAGE  # a question mark is no answer
    assert "?" in error
    Path("facts.toml").write_text(filled(text), "utf-8")
    assert tool(*bound)[0] == ExitCode.OK
    assert "# Nothing is missing." in tool("facts", *bound[1:])[1]


SEVERAL = """\
int (*volatile one)(int);
int (*volatile two)(int, int);
int (*jumps[4])(int);
int leaf(int x) { return x + 1; }
int depth(int n) { return n <= 0 ? 0 : n + depth(one ? n - 1 : 0) / 3; }
int f(int n, int *p)
{
    int sum = 0;
    if (n & 1)
        sum = one(n);
    else
        sum = two(n, n) - 3;
    sum += jumps[n & 3](sum);
    while (*p)
        sum += *p++;
    while (p[-1] != sum)
        sum -= *--p;
    return sum + depth(sum);
}
"""


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s", "mpc603e"])
def test_a_bound_that_fails_tells_all_that_is_missing_and_not_only_the_first(target, tool):
    write(SEVERAL, target)
    code, _, error = tool("bound", "f.elf", "--entry", "f", "--target", target)
    assert code == ExitCode.NO_BOUND
    assert "the targets of 2 indirect branches or calls are not known: of the one at f+0x" in error
    assert "are read from one at 0x" in error
    assert "are read from two at 0x" in error
    lines = [line for line in error.splitlines() if line.startswith("  ")]
    assert [re.findall(r"\[\[(\w+)\]\]", line) for line in lines] == [["calls"]] * 3 + [["recursion"]] + [["loop"]] * 2
    assert f"\n{len(lines)} facts are missing:\n" in error
    assert sum(bool(re.search(r"\(guest\.c:\d+\)", line)) for line in lines) >= len(lines) - 1  # code of no line
    code, text, _ = tool("facts", "f.elf", "--entry", "f", "--target", target)
    Path("facts.toml").write_text(filled(text), "utf-8")
    assert tool("bound", "f.elf", "--entry", "f", "--target", target, "--facts", "facts.toml")[0] == ExitCode.OK


def test_what_comes_behind_a_recursive_call_is_told_with_it(tool):
    write(
        "volatile int v;\nint f(int n)\n{\n    if (n < 2)\n        return v;\n    int s = f(n - 1) + f(n - 2);\n"
        "    do\n        s += v;\n    while (s & 7);\n    return s;\n}\n",
        "cortex-m4",
    )
    lines = [line for line in tool("bound", "f.elf", "--entry", "f")[2].splitlines() if line.startswith("  ")]
    assert [re.findall(r"\[\[(\w+)\]\]", line) for line in lines] == [["recursion"], ["loop"]]


def test_a_recursion_without_source_is_offered_by_the_code_of_its_function(tool):
    Path("guest.c").write_text("", "utf-8")
    code, text, _ = tool("facts", "f.elf", "--entry", "depth")
    assert code == ExitCode.OK
    assert 'function = "depth"\noffset = 0\nmax_depth = "?"' in text
    Path("facts.toml").write_text(filled(text), "utf-8")
    assert tool("bound", "f.elf", "--entry", "depth", "--facts", "facts.toml")[0] == ExitCode.OK


def test_a_loop_of_a_function_whose_source_is_not_understood_is_told_by_its_code(tool):
    """Braces that an ``#if`` chooses from, as FreeRTOS has: the name was left empty, which no fact may have."""
    header = "#define FEW 1\nint walk(int n)\n{\n    int sum = 0;\n#if FEW\n    if (n) {\n#else\n    {\n#endif\n"
    source = SOURCE.replace("int walk(int n)\n{\n    int sum = 0;\n", header).replace(
        "        sum += at->value;\n", "        sum += at->value; }\n", 1
    )
    write(source, "cortex-m4")
    code, text, _ = tool("facts", "f.elf", "--entry", "walk")
    assert code == ExitCode.OK
    assert 'function = ""' not in text
    assert "its function's source is not understood" in text
    Path("facts.toml").write_text(filled(text), "utf-8")
    code, _, error = tool("bound", "f.elf", "--entry", "walk", "--facts", "facts.toml")
    assert code == ExitCode.OK, error


def test_a_range_of_an_argument_is_offered_where_it_bounds_a_loop(tool):
    text = tool("facts", "f.elf", "--entry", "walk")[1]
    offered = re.findall(
        r'# its range bounds the loop at (.*)\n# \[\[argument\]\]\n# function = "walk"\n# index = (\d)', text
    )
    assert [index for _, index in offered] == ["0"]
    assert "guest.c:1" in offered[0][0]


def test_what_an_alignment_saves_while_loops_are_open_is_said_of_a_trial(tool):
    write(
        "int f(int *p, int n) { int s = p[0] + p[1]; while (n * n != 81) n = n * 5 + 1; return s + n; }", "arm926ej-s"
    )
    text = tool("facts", "f.elf", "--entry", "f", "--target", "arm926ej-s")[1]
    assert "# the bound in cycles of a trial, with one round for each loop above, goes from " in text


def test_an_alignment_of_pointers_is_offered_where_the_bound_in_cycles_becomes_smaller(tool):
    write("int f(int *p) { return p[0] + p[1]; }", "arm926ej-s")
    text = tool("facts", "f.elf", "--entry", "f", "--target", "arm926ej-s")[1]
    before, after = (int(n.replace(",", "")) for n in re.findall(r"cycles goes from ([\d,]+) to ([\d,]+)", text)[-1])
    assert after < before
    assert "of a trial" not in text
    (alignment,) = re.findall(r"# multiple_of = (\d+)", text)[-1:]
    Path("facts.toml").write_text(f'[[pointer]]\nmultiple_of = {alignment}\nbecause = "so it is"\n', "utf-8")
    words = ("bound", "f.elf", "--entry", "f", "--target", "arm926ej-s", "--facts", "facts.toml")
    assert f"{after:,} cycles" in tool(*words)[1]
    assert "multiple_of" not in tool("facts", *words[1:])[1]
    why = tool(*words[:-2], "--why")[1]
    assert "[[pointer]] multiple_of" in why
    assert f"to {after:,}" in why


def test_hashes_are_brought_up_to_date_after_it_was_shown_what_changed(tool):
    Path("facts.toml").write_text(filled(tool("facts", "f.elf", "--entry", "walk")[1]), "utf-8")
    write(SOURCE.replace("sum ^= at->value", "sum ^= 3 * at->value"), "cortex-m4")
    words = ("f.elf", "--entry", "walk", "--facts", "facts.toml")
    assert tool("bound", *words)[0] == ExitCode.USAGE
    code, text, _ = tool("facts", *words, "--bless")
    assert code == ExitCode.OK
    assert "-        sum ^= at->value;" in text
    assert "+        sum ^= 3 * at->value;" in text
    assert tool("bound", *words)[0] == ExitCode.OK
    assert "facts.toml: 0 hashes brought up to date" in tool("facts", *words, "--bless")[1]
    assert "#|         sum ^= 3 * at->value;" in Path("facts.toml").read_text("utf-8")


def test_a_hash_that_was_left_out_is_put_in(tool):
    text = filled(tool("facts", "f.elf", "--entry", "walk")[1])
    Path("facts.toml").write_text(re.sub(r'^sha256 = ".*"\n', "", text, flags=re.MULTILINE), "utf-8")
    words = ("f.elf", "--entry", "walk", "--facts", "facts.toml")
    assert tool("bound", *words)[0] == ExitCode.USAGE
    assert tool("facts", *words, "--bless")[0] == ExitCode.OK
    assert tool("bound", *words)[0] == ExitCode.OK


def test_the_facts_of_an_allocator_are_told_by_its_name_or_its_folder(tool):
    example = Path(__file__).resolve().parents[3] / "examples" / "own-allocator"
    own = Path("pool")
    own.mkdir()
    for name in ("manifest.toml", "pool.c", "pool.h"):
        (own / name).write_bytes((example / name).read_bytes())
    code, text, _ = tool("facts", "pool", "--entry", "malloc", "--heap", "4KiB")
    assert code == ExitCode.OK
    assert 'function = "pool_take"\nlabel = "search"' in text
    (own / "facts.toml").write_text(filled(text), "utf-8")
    assert "# Nothing is missing." in tool("facts", "pool", "--entry", "malloc", "--heap", "4KiB")[1]
    assert tool("facts", "pool", "--entry", "take")[0] == ExitCode.USAGE
    assert tool("facts", "tlsf", "--entry", "free", "--bless")[0] == ExitCode.USAGE


def test_what_cannot_be_brought_up_to_date_is_told(tool):
    assert tool("facts", "f.elf", "--entry", "walk", "--bless")[0] == ExitCode.USAGE
    assert tool("facts", "f.elf", "--entry", "wlak")[0] == ExitCode.USAGE
    Path("facts.toml").write_text('[[loop]]\nfunction = "gone"\nline = 3\nmax = 1\nbecause = "x"\n', "utf-8")
    code, _, error = tool("facts", "f.elf", "--entry", "walk", "--facts", "facts.toml", "--bless")
    assert code == ExitCode.USAGE
    assert "facts.toml:1" in error


def test_what_would_take_too_long_is_not_looked_at_and_that_is_said(tool, monkeypatch):
    monkeypatch.setattr(fact_skeleton, "_MOST_VISITS", 1)
    code, _, error = tool("bound", "f.elf", "--entry", "walk")
    assert code == ExitCode.NO_BOUND
    assert "the targets of the indirect branch or call at walk" in error
    assert "1 fact is missing:" in error or "facts are missing:" in error
    assert "and what comes behind: not looked at, as it would take too long: ask again with these facts" in error


COPIES = """\
int *volatile where;
static inline __attribute__((always_inline)) int sum_of(const int *p)
{
    int sum = 0;
    while (*p)
        sum += *p++;
    return sum;
}
int f(int n) { return sum_of(where) - sum_of(where + n); }
"""


def test_copies_of_a_loop_need_one_fact(tool):
    write(COPIES, "cortex-m4")
    code, text, _ = tool("facts", "f.elf", "--entry", "f")
    assert code == ExitCode.OK
    assert text.count("[[loop]]") == 1
    assert re.search(r"# the loop at f\+0x\w+ \(guest\.c:\d\) and f\+0x\w+ \(guest\.c:\d\), the loop of sum_of", text)
    Path("facts.toml").write_text(filled(text), "utf-8")
    assert tool("bound", "f.elf", "--entry", "f", "--facts", "facts.toml")[0] == ExitCode.OK


def test_a_source_that_is_not_found_is_told(tool):
    Path("guest.c").unlink()
    text = tool("facts", "f.elf", "--entry", "walk")[1]
    assert text.count("guest.c is not found, or not only once (--source)") == 3
    assert "no source loop is clearly its own" not in text


def test_a_variable_that_the_file_sets_to_a_function_is_offered_as_a_fact_about_it(tool):
    write(
        "int leaf(int x) { return x + 1; }\nint (*volatile two[2])(int) = {0, leaf};\nint (*volatile none)(int);\n"
        "int g(int n) { return two[1](n) + none(n); }\n",
        "cortex-m4",
    )
    text = tool("facts", "f.elf", "--entry", "g")[1]
    assert "the file has leaf in two, in writable memory" in text
    assert '[[word]]\nsymbol = "two"\noffset = 4\npoints_to = "?"' in text
    assert "[[calls]]" in text
    told = text.replace('points_to = "?"', 'points_to = "leaf"')
    Path("facts.toml").write_text(filled(told), "utf-8")
    code, _, error = tool("bound", "f.elf", "--entry", "g", "--facts", "facts.toml")
    assert code == ExitCode.OK, error


MOVED = """\
int spare(const int *p) { while (*p) p++; return *p; }
#line 1 "guest.c"
int f(const int *p)
{
    int sum = 0;
    _Pragma("loopbound min 0 max 9")
    while (*p)
        sum += *p++;
    return sum;
}
"""


def test_a_pragma_that_is_not_used_for_a_line_directive_is_told(tool):
    write(MOVED, "cortex-m4")
    text = tool("facts", "f.elf", "--entry", "f")[1]
    assert "a #line gives lines of guest.c to other code, so that its pragmas and labels are not used" in text


WALK = """
#include <stddef.h>
struct block { size_t bytes; struct block *next; };
static struct block first;
static struct block *before(struct block *at)
{
    struct block *b = &first;
    while (b->next && b->next < at)
        b = b->next;
    return b;
}
void set(void *arena, size_t bytes)
{
    struct block *const all = arena;
    *all = (struct block){bytes & ~7u, 0};
    first.next = all;
}
void *take(size_t size)
{
    struct block *const one = first.next, *const kept = before(one);
    size = ((size + 7) & ~7u) + 8;
    if (!one || one->bytes < size) return 0;
    if (one->bytes < size + 16) { kept->next = one->next; return one + 1; }
    one->bytes -= size;
    struct block *const cut = (struct block *)((char *)one + one->bytes);
    cut->bytes = size;
    return cut + 1;
}
void give(void *p)
{
    struct block *const one = (struct block *)p - 1, *const kept = before(one);
    one->next = kept->next;
    kept->next = one;
}
"""


def test_what_is_asked_of_one_call_of_an_allocator_is_no_error_of_the_other(tool):
    """Of a function that is expanded in both, a loop may clearly be that of the source in one of them only."""
    own = Path("walks")
    own.mkdir()
    (own / "w.c").write_text(WALK, "utf-8")
    head = 'name = "walks"\ntitle = "walks"\nsources = ["w.c"]\nalignment_bytes = 8\nminimum_heap_bytes = 64\n[call]\n'
    head += 'declarations = "void set(void *, size_t); void *take(size_t); void give(void *);"\n'
    head += 'init = "set(arena, bytes)"\nmalloc = "take(size)"\nfree = "give(pointer)"\n'
    (own / "manifest.toml").write_text(head, "utf-8")
    code, text, _ = tool("facts", "walks/", "--entry", "malloc", "--heap", "4KiB")
    assert code == ExitCode.OK
    (fact,) = [part for part in text.split("[[loop]]") if 'function = "before"' in part]
    assert "optional = true" in fact
    (own / "facts.toml").write_text(filled(text), "utf-8")
    code, _, error = tool("facts", "walks/", "--entry", "free", "--heap", "4KiB")
    assert code == ExitCode.OK, error

"""How often places are executed at most by the sources: as counted by hand, and never less than random programs run."""

import json
import random
import re
from dataclasses import replace

import pytest

from tests.certificate.facts.test_sums import open_constraints
from tests.certificate.forgeries import solved_again
from tests.resealed import reseal
from tests.support import image_of
from wcet_probe.analyzer.facts.source_index import index_sources
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.facts.asserted import read_asserted
from wcet_probe.certificate.facts.source_counts import SourceCounts
from wcet_probe.cli import main

LOOPS = """
static int port;
static void counted(int n)
{
    port = n; /* HERE */
}
void other(void) { for (int i = 0; i < port; i++) counted(i); }
void entry(int n)
{
    for (int i = 0; i < 3; i++) { /* loop: three */
        counted(i);
        do { /* loop: two */
            counted(i);
        } while (n-- > i);
    }
    while (port < n) /* loop: five */
        counted(n);
    counted(n);
}
"""
FACTS = "\n".join(
    f'[[loop]]\nfunction = "entry"\nlabel = "{name}"\nmax = {most}\n'
    for name, most in (("three", 3), ("two", 2), ("five", 5))
)


def executions(text, facts=FACTS, entry="entry", others=()):
    asserted = read_asserted([("facts.toml", facts)], {"a.c": text, **dict(others)})
    counts = SourceCounts(asserted, {}, entry)
    return counts.of_place("a.c", re.search(r"[^\s;{}]+[;\s]*/\* HERE", text).start()), sorted(counts.used)


def test_a_place_counts_for_each_call_and_each_round():
    """What other functions call does not count, nor how often; the facts that it rests on are told."""
    assert executions(LOOPS) == (3 + 3 * 2 + 5 + 1, ["facts.toml:1", "facts.toml:11", "facts.toml:6"])
    assert executions(LOOPS.replace("entry(int n)\n{", "entry(int n)\n{ /* HERE */"), entry="counted")[0] == 1
    assert executions(LOOPS.replace("port < n)", "port < n && (counted(1), 1))"))[0] == 15 + 5 + 1
    assert executions(LOOPS.replace("n-- > i)", "n-- > (counted(1), i))"))[0] == 15 + 6
    assert executions(LOOPS, FACTS + "total = 1\n")[0] == 3 + 6 + 1 + 1
    assert executions(LOOPS, FACTS + 'total = 1\nwithin = "three"\n')[0] == 15


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("static int port;", "static int port; void (*way)(int) = counted;"),
        ("static int port;", "#define CALL counted\nstatic int port;"),
        ("static int port;", "#define JOIN(a, b) a##b\nstatic int port;"),
        ("static int port;", "#define OPEN {\nstatic int port;"),
        ("static int port;", '#include "missing.h"\nstatic int port;'),
        ("static int port;", "#include <missing.h>\nstatic int port;"),
        ("static int port;", '/* with */ #include "missing.h"\nstatic int port;'),
        ("static int port;", '# /* with */ include "missing.h"\nstatic int port;'),
        ("static int port;", "#define DO do\nstatic int port;"),
        (
            "static int port;",
            "typedef void t(void);\nt unknown;\nstatic int port;\n#define A B\n#define B unknown()\n#define port A",
        ),
        ("static int port;", "#include HEADER\nstatic int port;"),
        ("static int port;", 'static int port; void same(int) __attribute__((alias("entry")));'),
        ("static int port;", 'static int port; void same(int) __asm__("counted");'),
        ("static int port;", "static int port;\n#if 0\n}\n#endif"),
        ("static int port;", "#if 0\n{\n#endif\nstatic int port;\n#if 0\n}\n#endif"),
        ("static int port;", "static int port; int cou\\\nnted;"),
        ("static int port;", "static int port; MAKE(counted(1))"),
        ("static int port;", "void unknown(void);\nstatic int port = sizeof 1;\n#define port unknown()"),
        ("    counted(n);\n}", "    counted(n); unknown();\n}"),
        ("    counted(n);\n}", "    counted(n); entry(n);\n}"),
        ("    counted(n);\n}", "again: counted(n); if (n) goto again;\n}"),
        ("    counted(n);\n}", "    counted(n); void inner(int m) { counted(m); } inner(1); inner(2);\n}"),
        ("    counted(n);\n}", "    for (;;) counted(n);\n}"),
        ("        counted(n);\n", "        if (n) port = 1; else counted(n);\n"),
        ("        counted(n);\n", "        again: { port = 1; counted(n); }\n"),
        ("        counted(n);\n", "        for (int i = 0; i < 9; i++) { counted(n); }\n"),
        ("five */\n        counted(n);", "five */ for (;;) { counted(n); }"),
        ("    port = n; /*", "    port = n; if (n) counted(n - 1); /*"),
        ("    port = n; /*", "    REPEAT(5) port = n; /*"),
    ],
)
def test_where_a_text_does_not_tell_nothing_follows(old, new):
    assert LOOPS.count(old) == 1
    assert executions(LOOPS.replace(old, new))[0] is None


HIDDEN = """
static int port;
static void counted(int n)
{
    port = n; /* HERE */
}
OUTSIDE
void entry(int n)
{
    int x = 0;
    INSIDE
}
"""
TWICE = "#define TWICE(x) x; x"
MORE = "static int more(void) { counted(1); return 1; }"
LEFT = '[[loop]]\nfunction = "entry"\nlabel = "left"\nmax = 0\n'


@pytest.mark.parametrize(
    ("outside", "inside"),
    [
        pytest.param("#define A /*\n*/ counted(1)", "A;", id="comment in a directive"),
        pytest.param("#define A(x) x /* a\nb */ , x", "A(counted(1));", id="comment in a macro"),
        pytest.param("#define A /\\\n* a\n*/ counted(1)", "A;", id="joined comment in a directive"),
        pytest.param("\f#define A counted(1)", "A;", id="form feed before a directive"),
        pytest.param("", "x = 1'0; counted(1); x = 1'0;", id="separators of digits"),
        pytest.param("", 'char *s = "??/"; s = " ; counted(1); ";', id="trigraph in a string"),
        pytest.param("", "/* *??/\n/ counted(1); /* */", id="trigraph in a comment"),
        pytest.param("", "/* *\\\n/ counted(1); /* */", id="joined end of a comment"),
        pytest.param("", "// a \\ \n /* \n counted(1); /* */", id="joined line of a comment"),
        pytest.param(TWICE, "TWICE(counted(1));", id="argument twice"),
        pytest.param(f"#define MAX(a, b) ((a) > (b) ? (a) : (b))\n{MORE}", "x = MAX(more(), 0);", id="maximum"),
        pytest.param(f"{TWICE}\n#define A TWICE", "A(counted(1));", id="argument twice by another macro"),
        pytest.param(f"{TWICE}\n#define SAME(x) x", "SAME(TWICE)(counted(1));", id="argument twice by a macro's value"),
        pytest.param("#define ALL(...) __VA_ARGS__; __VA_ARGS__", "ALL(counted(1));", id="arguments twice"),
        pytest.param("", '#include "body.h"\nx = 1;', id="included in a body"),
        pytest.param("#define LOOP for", "LOOP (int i = 0; i < 9; i++) counted(1);", id="keyword of a loop"),
        pytest.param("#define A do ; while", "A (counted(1), n--);", id="loop without a body"),
        pytest.param("#define BACK go\\\nto", "again: counted(1); BACK again;", id="keyword over two lines"),
        pytest.param("#define STEP port++;", "while (n) /* loop: left */\n STEP counted(2);", id="end of a statement"),
        pytest.param("#define ON x = 1; if (x)", "while (n) /* loop: left */\n ON counted(2);", id="end and a test"),
        pytest.param(
            "#define BLOCK(x) { x }",
            "while (n) /* loop: left */\n BLOCK(x++; counted(2);) counted(1);",
            id="block of a macro",
        ),
        pytest.param(
            "#define DROP(x)",
            "while (n) { /* loop: left */\nDROP( } ) x = 1; DROP( { ) } counted(1);",
            id="brace that is left out",
        ),
        pytest.param("", "void *(inner)(int m) { counted(m); } (inner)(1);", id="function in parentheses"),
        pytest.param("", "#if 0\ndon't /* \n#endif\n counted(1);\n#if 0\n*/\n#endif", id="apostrophe"),
        pytest.param("int *b[5];", "__builtin_setjmp(b); counted(1); __builtin_longjmp(b, 1);", id="jump back"),
        pytest.param('_Pragma("weak other=counted") void other(int);', "other(1);", id="weak name"),
        pytest.param('_Pragma("redefine_extname other counted") void other(int);', "other(1);", id="other name"),
        pytest.param("void __wrap_more(void) { __real_more(); }\n" + MORE, "more();", id="wrapped by the linker"),
    ],
)
def test_no_code_hides_from_the_plain_reading(outside, inside):
    """Each of these was counted less often than it may be executed, most of them never."""
    others = [("body.h", "counted(1);")] if "include" in inside else [("b.c", "static void other(int n) { }")]
    assert executions(HIDDEN.replace("OUTSIDE", "").replace("INSIDE", "counted(1);"))[0] == 1
    assert executions(HIDDEN.replace("OUTSIDE", outside).replace("INSIDE", inside), LEFT, others=others)[0] is None


@pytest.mark.parametrize(
    "around",
    [
        "{} /* it's \\ \n no code */",
        "x = MAX(1, 2); {}",
        "if (x > 0) {{ {} }} // isn't",
    ],
)
def test_what_is_read_as_compilers_read_it_is_counted(around):
    text = HIDDEN.replace("OUTSIDE", "#define MAX(a, b) ((a) > (b) ? (a) : (b))")
    assert executions(text.replace("INSIDE", around.format("counted(1);")))[0] == 1


def test_the_linkage_of_cplusplus_around_a_text_is_no_block():
    """Of 229 files of firmware 83 have it."""
    text = HIDDEN.replace("OUTSIDE", "").replace("INSIDE", "counted(1);")
    begin, end = '#ifdef __cplusplus\nextern "C" {\n#endif', "#if defined(__cplusplus)\n} /* C */\n#endif"
    assert executions(f"{begin}{text}{end}\n")[0] == 1
    assert executions(f"{begin.replace('{', '{ int x;')}{text}{end}\n")[0] is None
    for other in ("#ifdef OTHER", "#ifndef __cplusplus", "#if !defined(__cplusplus)"):
        assert executions(f"{begin.replace('#ifdef __cplusplus', other)}{text}{end}\n")[0] is None


def test_other_sources_call_it_too():
    more = "void counted(int); void more(void) { counted(1); }"
    assert executions(LOOPS, others=[("b.c", more)])[0] == 15
    called = LOOPS.replace("    counted(n);\n}", "    counted(n); more();\n}")
    assert executions(called, others=[("b.c", more)])[0] == 16
    assert executions(called, others=[("b.c", more.replace("{", "{ other();"))])[0] is None
    assert executions(called, others=[("b.s", ".global more\nmore: b counted")])[0] is None


class Program:
    """A random program, as text and as what it does."""

    def __init__(self, draw):
        self.draw, self.labels, self.names = draw, {}, ["entry"]
        self.bodies = {"counted": []}
        for number in range(draw.randint(1, 4)):
            self.names.append(f"f{number}")
        for name in reversed(self.names):  # calls go to functions that stand above
            self.bodies[name] = self.block(name, 0)

    def block(self, name, depth):
        return [self.statement(name, depth) for _ in range(self.draw.randint(1, 3))]

    def statement(self, name, depth):
        kind = self.draw.choice(["call", "call", "loop", "if", "plain"] if depth < 3 else ["call", "plain"])
        if kind == "call":
            return "call", self.draw.choice([*(one for one in self.bodies), "counted"])
        if kind == "plain":
            return ("plain",)
        if kind == "if":
            return "if", self.block(name, depth + 1), self.block(name, depth + 1), self.draw.choice([True, False])
        label = f"l{len(self.labels)}"
        self.labels[label] = name, self.draw.randint(0, 3)
        form = self.draw.choice(["for", "while", "do", "bare"])
        body = [("call", "counted")] if form == "bare" else self.block(name, depth + 1)
        return "loop", form, label, body, self.draw.choice([True, False])

    def text(self):
        own = [f"static void {name}(int n)\n{{\n{self.lines(body)}}}\n" for name, body in self.bodies.items()]
        return "static int port;\n" + "".join(own).replace("(int n)\n{\n", "(int n)\n{\n    port = n; /* HERE */\n", 1)

    def lines(self, block):
        return "".join(self.line(*one) for one in block)

    def line(self, kind, *about):
        if kind == "plain":
            return "port++;\n"
        if kind == "call":
            return f"{about[0]}(port);\n"
        if kind == "if":
            one, other, has_braces = about
            if has_braces or len(one) > 1 or len(other) > 1:
                return f"if (port) {{\n{self.lines(one)}}} else {{\n{self.lines(other)}}}\n"
            return f"if (port)\n{{ {self.lines(one)} }}\nelse\n{self.lines(other)}"
        form, label, body, in_head = about
        head = "(counted(1), n > 0)" if in_head else "n > 0"
        if form == "do":
            return f"do {{ /* loop: {label} */\n{self.lines(body)}}} while {head if in_head else f'({head})'};\n"
        start = f"for (int i = 0; {head}; i++)" if form == "for" else f"while ({head})"
        return (
            f"{start} /* loop: {label} */\n{self.lines(body)}"
            if form == "bare"
            else (f"{start} {{ /* loop: {label} */\n{self.lines(body)}}}\n")
        )

    def run(self, name, chance):
        """Executions of the place in a call, each branch and round as chance says."""
        return int(name == "counted") + self.run_block(self.bodies[name], chance)

    def run_block(self, block, chance):
        total = 0
        for kind, *about in block:
            if kind == "call":
                total += self.run(about[0], chance)
            elif kind == "if":
                total += self.run_block(about[0] if chance() else about[1], chance)
            elif kind == "loop":
                form, label, body, in_head = about
                rounds = sum(chance() for _ in range(self.labels[label][1]))
                total += sum(self.run_block(body, chance) for _ in range(rounds))
                total += in_head * (rounds + (form != "do"))
        return total


@pytest.mark.parametrize("seed", range(8))
def test_no_run_of_a_random_program_executes_a_place_oftener(seed):
    draw, told = random.Random(seed), 0
    for _ in range(50):
        program = Program(draw)
        facts = "".join(
            f'[[loop]]\nfunction = "{name}"\nlabel = "{label}"\nmax = {most}\n'
            for label, (name, most) in program.labels.items()
        )
        most, _ = executions(program.text(), facts)
        told += most is not None
        for likely in (1.0, 0.9, 0.5) if most is not None else ():
            assert program.run("entry", lambda: draw.random() < likely) <= most, program.text()  # noqa: B023
    assert told >= 40


TAKEN_OFF = """\
volatile unsigned sink;
unsigned kept;
void entry(unsigned n)
{
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
SUM = """[[loop]]
function = "entry"
label = "first"
max = {most}
optional = true
because = "as it says"
sha256 = "{sha256}"

[[flow]]
function = "entry"
sum = {{ "point told" = 1, "{less}" = -1 }}
max = 0
because = "each loop has four iterations, or the second one none"
sha256 = "{sha256}"
"""


@pytest.mark.parametrize("target", ["cortex-m4", "mpc603e"])
@pytest.mark.parametrize("less", ["loop first", "point stored"])
def test_what_takes_off_a_sum_is_counted_by_the_source(target, less, tmp_path, monkeypatch, capsys):
    """Of four stores the code has one. The sum follows with four rounds, not with three, and by the loop's fact."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guest.c").write_text(TAKEN_OFF)
    (tmp_path / "firmware.elf").write_bytes(image_of(TAKEN_OFF, load_target(target), ".c").elf)
    sha256 = index_sources({"guest.c": TAKEN_OFF}).function("entry").sha256
    (tmp_path / "facts.toml").write_text(SUM.format(most=4, less=less, sha256=sha256))
    about = ["--facts", "facts.toml"]
    assert main(["bound", "firmware.elf", "--entry", "entry", "--target", target, *about, "--json", "-q"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert "takes off 4 at most" in json.dumps(document)
    assert open_constraints(document, about, tmp_path) == []
    found = open_constraints(solved_again(document, with_less), about, tmp_path)
    assert found == ["constraints in instructions", "constraints in cycles"]
    listed = document["bound"]["assumptions"]
    document["bound"]["assumptions"] = [one for one in listed if one["id"] != "fact facts.toml:1"]
    assert len(document["bound"]["assumptions"]) == len(listed) - 1
    reseal(document, tmp_path / "f.json")
    assert main(["verify", str(tmp_path / "f.json"), "--image", "firmware.elf", *about]) == 1
    assert "fact facts.toml:1" in capsys.readouterr().err


def with_less(problem, derivations, followed):
    """The sum may be one less."""
    constraints = tuple(
        replace(one, constant=one.constant - 1) if one.name.startswith("flow:") else one for one in problem.constraints
    )
    return replace(problem, constraints=constraints), derivations, followed

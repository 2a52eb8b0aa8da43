"""The hash of a function's definition: one rule, which the checker reads in its own way."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest
import ziglang

from wcet_probe.analyzer.facts.source_hash import tokens
from wcet_probe.analyzer.facts.source_loops import parse_source
from wcet_probe.certificate.facts import hashes
from wcet_probe.certificate.facts.plain_source import definitions

MUSL = Path(ziglang.__file__).parent / "lib" / "libc" / "musl" / "src"


def by_checker(source, name):
    """The hashes that the checker has of the definitions of a function."""
    texts = definitions(source, name)
    return {sha256("\0".join(hashes.tokens(text)).encode()).hexdigest() for text in texts}


def by_prover(source, name="f"):
    return [one.sha256 for one in parse_source("a.c", source).functions if one.name == name]


@pytest.mark.covering(0)
@pytest.mark.parametrize("folder", ["math", "network", "stdio", "time"])
def test_the_checker_finds_the_hash_of_functions_that_nobody_here_wrote(folder):
    held = 0
    for file in sorted((MUSL / folder).glob("*.c")):
        text = file.read_text("utf-8", "replace")
        for function in parse_source(file.name, text).functions:
            found = by_checker(text, function.name)
            assert not found or function.sha256 in found, (file.name, function.name)
            held += bool(found)
    assert held > 20


PLAIN = "int f(int a)\n{ return a - 1; }\n"
SAME = {
    "comments and lines": "int // one\\\n two\nf(int a) { return /* ; */ a -\\\n 1; }\n",
    "a pragma": 'int f(int a)\n{\n#pragma unroll \\\n 4\n_Pragma( "loopbound min 1 max 2" ) return a - 1; }\n',
    "what stands around": '#include "a.h"\nstruct s { int f; };\n' + PLAIN + "int g(void) { return f(1); }\n",
    "C++ around": 'extern "C" {\nint f(int a)\n{ return a - 1; }\n}\n',
}
OTHER = {
    "a constant": "int f(int a)\n{ return a - 2; }\n",
    "a type": "long f(int a)\n{ return a - 1; }\n",
    "an attribute": "FAST int f(int a)\n{ return a - 1; }\n",
    "white space in a string": 'int f(int a)\n{ p("a  b"); return a - 1; }\n',
    "another string": 'int f(int a)\n{ p("a b"); return a - 1; }\n',
    "an error": '#define A\nint f(int a)\n{\n#if A\n#error "no A; no f {"\n#endif\nreturn a - 1; }\n',
    "an apostrophe": "int f(int a)\n{\n#if A\n#error don't\n#endif\nreturn a - 1; }\n",
    "an escape": "int f(int a)\n{ p(\"\\x41\\\"b\\\\\"); return a - '\\''; }\n",
    "a word that a parser does not know": 'int f(int a)\n{ asm("" : "=r"(a)); FOREVER return a - 1; }\n',
    "two headers": "#if A\nint f(int a)\n#else\nint f(int a, int b)\n#endif\n{ return a - 1; }\n",
}


@pytest.mark.parametrize("case", SAME)
def test_what_is_no_token_leaves_the_hash(case):
    assert by_prover(SAME[case]) == by_prover(PLAIN)
    assert {*by_prover(SAME[case])} == by_checker(SAME[case], "f")


def test_what_is_a_token_changes_the_hash():
    found = [by_prover(source) for source in (PLAIN, *OTHER.values())]
    assert len({one for (one,) in found}) == len(found)
    for source in OTHER.values():
        assert {*by_prover(source)} == by_checker(source, "f")


def test_of_two_definitions_that_a_condition_chooses_from_the_checker_knows_both():
    both = f"#ifdef A\n{PLAIN}#else\nint f(int a) {{ return a; }}\n#endif\n"
    assert len({*by_prover(both)}) == 2
    assert {*by_prover(both)} == by_checker(both, "f")


def test_declarations_between_header_and_body_count():
    first, second = (by_prover(f"int f(a) {kind} a; {{ return a; }}\n") for kind in ("int", "char"))
    assert first != second


def test_tokens():
    text = "#if A == 1\nx+=.5e-3f<<=y;\n#endif\n'\\0' ... a##b"
    assert [*tokens(text)] == [
        *("#if", "A", "==", "1", "", "x", "+=", ".5e-3f", "<<=", "y", ";", "#endif"),
        *("'", "\\0", "'", "...", "a", "##", "b"),
    ]

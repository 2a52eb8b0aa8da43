"""A function's header, once in each style: one of them is kept, and all else stays where it is; what is included."""

import pytest

from wcet_probe.analyzer.facts.source_headers import with_one_header
from wcet_probe.analyzer.facts.source_loops import parse_source

STYLES = b"""\
int before;
#if __STD_C
void *take(unsigned bytes)
#else
void *take(bytes) unsigned bytes;
#endif
{
    while (bytes)
        bytes--;
    return 0;
}
"""


def test_the_first_header_is_kept_where_it_stands():
    kept = with_one_header(bytearray(STYLES))
    assert len(kept) == len(STYLES)
    lines = kept.split(b"\n")
    assert lines[2] == b"void *take(unsigned bytes)"
    assert [line.strip() for line in lines[1:6] if line.strip()] == [b"void *take(unsigned bytes)"]
    assert lines[6:] == STYLES.split(b"\n")[6:]


def test_an_empty_first_style_gives_way_to_the_other():
    text = STYLES.replace(b"void *take(unsigned bytes)\n", b"\n")
    assert b"take" not in with_one_header(bytearray(text))


def test_the_loops_are_those_of_a_function_with_one_header():
    (loop,) = parse_source("a.c", STYLES.decode(), {}).loops
    assert (loop.function, loop.first_line) == ("take", 8)


@pytest.mark.parametrize(
    "text",
    [
        b"#if A\nint a;\n#else\nint b;\n#endif\nint c;\n",
        b"#if A\nint f(void)\n#endif\n{ return 1; }\n",
        b"int f(void)\n{\n    return 1;\n}\n",
    ],
)
def test_conditional_text_that_is_no_header_stays(text):
    assert with_one_header(bytearray(text)) == text

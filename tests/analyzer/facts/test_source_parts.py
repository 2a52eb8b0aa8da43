"""What of a source facts speak of, in words and by line."""

from wcet_probe.analyzer.facts.source_parts import SourceLoop, SourceTest


def test_a_loop_holds_its_lines_and_says_where_it_is():
    loop = SourceLoop("a.c", "f", 3, 5, (3,))
    assert [line for line in range(8) if line in loop] == [3, 4, 5]
    assert str(loop) == "the loop of f at a.c:3"


def test_a_name_that_is_no_variable_is_no_operand():
    test = SourceTest("size", "<", "LIMIT", "size < LIMIT")
    known = test.of_variables({"size"})
    assert (known.left, known.operator, known.right, str(known)) == ("size", "<", None, "`size < LIMIT`")
    assert SourceTest("size", "<", 4, "size < 4").of_variables(()) == SourceTest(None, "<", 4, "size < 4")

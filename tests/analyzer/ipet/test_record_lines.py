"""Records are read as they were written: those of true certificates, line for line."""

import pytest

from tests.certificate.specimens import specimen
from wcet_probe.analyzer.ipet.record_lines import annotation_lines, flag_lines, invariant_lines
from wcet_probe.certificate.caches.annotations import annotations_of
from wcet_probe.certificate.kernel.flags import flags_of
from wcet_probe.certificate.kernel.records import invariants_of, read_records, says_nothing
from wcet_probe.certificate.names.names import Pointers
from wcet_probe.certificate.values.numbers import ANY, TOP, number
from wcet_probe.certificate.values.state import STATIC, Comparison

OF_CACHES = {"symbol", "name", "shown", "miss", "paid", "must", "modified", "held", "unchecked"}


def lines_of(text, kinds):
    return sorted(line for line in text.split("\n") if line.split(" ", 1)[0] in kinds)


@pytest.mark.parametrize("own", [("tlsf", "mpc603e", "free"), ("list", "mpc603e", "f")])
def test_records_are_written_as_they_were_read(own):
    document, _ = specimen(*own)
    first, second = document["bound"]["certificates"]
    records = read_records(first)
    invariants = [line for node, own in invariants_of(records).items() for line in invariant_lines(node, own)]
    assert sorted(invariants) == lines_of(first, {"invariant"})
    assert sorted(flag_lines(flags_of(records))) == lines_of(first, {"flags"})
    assert sorted(annotation_lines(annotations_of(read_records(second), Pointers()))) == lines_of(second, OF_CACHES)


def test_what_holds_of_any_place_is_not_written():
    assert says_nothing("r1", TOP)
    assert says_nothing(8, ANY)
    assert not says_nothing("r1", ANY)
    assert not says_nothing(8, TOP)
    values = {"r1": number(-8, 24, 4), "r2": TOP, -8: number(3), STATIC + 0x40: number(1, 2), 12: ANY}
    assert invariant_lines("f", values) == [
        "invariant f r1 number 4294967288 4 8",
        "invariant f stack:-8 number 3 0 0",
        "invariant f static:0x40 number 1 1 1",
    ]


def test_flags_are_written_with_their_relations():
    told = Comparison("r1", number(0, 8, 4), "r2", number(7), holding=frozenset({("!=", False), ("<", True)}))
    result = Comparison("r1", number(1), None, number(0), is_signed=True, is_result=True)
    assert list(flag_lines({"f": {"nzcv": told, "cr0": result}})) == [
        "flags f cr0 signed result 1 0 0 0 0 0 -",
        "flags f nzcv either numbers 0 4 2 7 0 0 !=u,<s",
    ]

"""Bounds of any firmware's functions; `tests/cli/test_bound.py` has the rest."""

from dataclasses import replace

import pytest

from tests.support import TARGETS, guest_on, image_of
from wcet_probe.answer.firmware.firmware import FirmwareRequest, bound_firmware
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.kernel.verify import check_certificate
from wcet_probe.errors import AnalysisError, UsageError

SOURCE = """\
int table[8];
int f(void)
{
    int n = 0;
    for (int i = 0; i < 8; i++)
        n += table[i];
    return n;
}
"""


def request(folder, target):
    (folder / "firmware.elf").write_bytes(image_of(SOURCE, target, ".c").elf)
    return FirmwareRequest(folder / "firmware.elf", "f", target, [], [folder], {})


@pytest.mark.parametrize("name", TARGETS)
def test_a_bound_on_each_target(tmp_path, name):
    told = []
    found = bound_firmware(request(tmp_path, load_target(name)), told.append)
    assert told
    assert [loop.max for loop in found.bound.loops] == [8]
    certified = [check_certificate(text).bound for text in found.bound.certificates]
    assert certified == [found.bound.instructions, found.bound.cycles]
    assert found.sources == {}


def test_a_source_is_found_below_its_folder(tmp_path):
    (tmp_path / "guest.c").write_text(SOURCE)
    assert bound_firmware(request(tmp_path, load_target("cortex-m4"))).sources == {"guest.c": SOURCE}


def test_another_byte_order_is_refused(tmp_path):
    asked = request(tmp_path, load_target("cortex-m4"))
    with pytest.raises(UsageError, match=r"firmware\.elf is little-endian, cortex-m4 is not; choose a target"):
        bound_firmware(replace(asked, target=replace(asked.target, big_endian=True)))


def test_a_byte_order_that_no_target_of_the_instruction_set_has_is_to_be_built_anew(tmp_path, monkeypatch):
    """As big-endian Arm: there are big-endian targets, but not of it."""
    monkeypatch.setattr("wcet_probe.answer.firmware.firmware.target_names", lambda: ["mpc603e"])
    asked = request(tmp_path, load_target("cortex-m4"))
    with pytest.raises(UsageError, match="no target that executes thumb is, so build it big-endian"):
        bound_firmware(replace(asked, target=replace(asked.target, big_endian=True)))


LIST = """\
struct node { struct node *next; unsigned number; } nodes[3];
unsigned given;
__attribute__((noinline)) unsigned sum(struct node *one)
{
    unsigned found = 0;
    do found += one->number, one = one->next; while (one != nodes);
    return found;
}
unsigned f(void)
{
    for (unsigned i = 0; i < 3; i++)
        nodes[i].next = &nodes[i == 2 ? 0 : i + 1];
    return FIRST;
}
"""


def test_a_list_that_the_function_makes_itself_is_gone_through_and_another_one_is_asked_for(tmp_path):
    target = load_target("cortex-m4")
    for first, is_known in (("sum(nodes)", True), ("sum(given ? nodes : nodes + 1)", False)):
        elf = tmp_path / f"{is_known}.elf"
        elf.write_bytes(image_of(LIST.replace("FIRST", first), target, ".c").elf)
        asked = FirmwareRequest(elf, "f", target, [], [tmp_path], {})
        if not is_known:
            with pytest.raises(AnalysisError, match="no bound for the loop at sum"):
                bound_firmware(asked)
            continue
        bound = bound_firmware(asked).bound
        assert "initial-data" not in {one.id for one in bound.assumptions}
        guest = guest_on(image_of(LIST.replace("FIRST", first), target, ".c"), target)
        with guest.machine() as machine:
            assert machine.count("f", ()) == bound.instructions

"""What a document says is computed again, or named as the author's word: each value of it is changed once."""

import copy
import fnmatch
import json
import random
from functools import cache

import pytest

from tests.analyzer.facts.test_restrictions import SOURCE
from tests.results import result
from tests.support import image_of, images_dir
from wcet_probe.answer.firmware.firmware import FirmwareRequest, bound_firmware
from wcet_probe.build.compilation import build_image
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.certificate.kernel.verify import bound_digest
from wcet_probe.certificate.results.observed import verify_slack
from wcet_probe.cli import main
from wcet_probe.errors import WcetProbeError
from wcet_probe.evidence.checking import check_file_result
from wcet_probe.evidence.said import AUTHORS_WORDS
from wcet_probe.reports.formats.bound_document import firmware_document
from wcet_probe.reports.formats.schema import validate

OPEN = {
    "bound/digest": None,  # the test makes it right again
    "tool/*": None,  # the bill of materials
    "observed/*": "what was measured",
    "state/candidates/*": "what was measured",
    "image/compiler": "compiler and options",
    "image/flags/*": "compiler and options",
    "request/elf": None,  # how the asker calls the file
    "bound/assumptions/*/executions": "how often assumptions were checked",
    "bound/assumptions/*/statement": "words about facts besides their reasons",
    "bound/flow_claims/*/statement": "words about facts besides their reasons",
    "bound/idle_facts/*/why": "words about facts besides their reasons",
    "bound/flow_claims/*/observed": "observations of loops, sums and blocks",
    "bound/loops/*/observed_max": "observations of loops, sums and blocks",
    "bound/graph/blocks/*/observed_executions": "observations of loops, sums and blocks",
    "bound/loops/*/total": "totals of loops",
    "bound/loops/*/expression": "how counters of loops are told",
    "witnesses/instructions/cross_check/*": "what the second engine counted",
    "cross_check/*": "what the second engine counted",
    "witnesses/cycles/cross_check/*": "what the second engine counted",
}
"""Values that may be changed without a refusal, and what the line of the author's words says of them."""


@cache
def firmware():
    source = "int f(int n) { int k = 0; for (int i = 0; i < 7; i++) k += n * i; return k; }"
    elf = image_of(source, load_target("cortex-m4"), ".c").elf
    file = images_dir() / "said.elf"
    file.write_bytes(elf)
    with pytest.MonkeyPatch.context() as patch:
        printed = []
        patch.setattr("wcet_probe.cli.streams.print_json", printed.append)
        assert main(["bound", str(file), "--entry", "f", "--json", "-q"]) == 0
    return json.loads(json.dumps(printed[0])), elf


@cache
def allocator(name, target):
    elf = build_image(load_allocator(name, {}), load_target(target), "zig", images_dir()).elf
    return result(name, target, heap_bytes=8192, why=True), elf


def words(document, elf):
    if document["format"] == "wcet-probe-result":
        verify_slack(document)
    _, others = check_file_result(document, json.dumps(document).encode(), elf)
    return next(one.found for one in others if one.check == AUTHORS_WORDS)


def leaves(value, path=()):
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, (*path, key))
    else:
        yield path


def others(old):
    """Values of the same type, or of one that may be there as well."""
    match old:
        case bool():
            return [not old]
        case int():
            return [old + 1]
        case str():
            return [f"{old} x", old[:-1] + ("0" if old[-1:] != "0" else "1")]
    return [1, "x"]


def changed(document, path):
    """The document with another value at ``path``, valid and with a right digest; None where there is no other."""
    for value in others(at(document, path)):
        found = copy.deepcopy(document)
        at(found, path[:-1])[path[-1]] = value
        if found.get("bound"):
            found["bound"]["digest"] = bound_digest(found["bound"])
        try:
            validate(found)
        except WcetProbeError:
            continue
        return found
    return None


def at(value, path):
    for key in path:
        value = value[key]
    return value


def check(document, elf, paths):
    words(document, elf)
    for path in paths:
        found = changed(document, path)
        if found is None:
            continue
        name = "/".join(map(str, path))
        pattern = next((one for one in OPEN if fnmatch.fnmatchcase(name, one)), None)
        try:
            said = words(found, elf)
        except WcetProbeError:
            continue
        assert pattern is not None, f"{name} was changed, and nobody saw it"
        assert OPEN[pattern] is None or OPEN[pattern] in said, name


SPECIMENS = {
    "first-fit": lambda: allocator("first-fit", "cortex-m4"),
    "tlsf": lambda: allocator("tlsf", "mpc603e"),
    "firmware": firmware,
}


@pytest.mark.parametrize("specimen", SPECIMENS)
def test_a_changed_value_is_refused_or_the_author_s(specimen):
    document, elf = SPECIMENS[specimen]()
    check(document, elf, random.Random(1).sample(list(leaves(document)), 24))


@pytest.mark.slow
@pytest.mark.parametrize("specimen", SPECIMENS)
def test_every_changed_value_is_refused_or_the_author_s(specimen):
    document, elf = SPECIMENS[specimen]()
    chosen = {}
    for path in leaves(document):
        chosen.setdefault(tuple(key for key in path if isinstance(key, str)), []).append(path)
    check(document, elf, [path for paths in chosen.values() for path in {paths[0], paths[len(paths) // 2], paths[-1]}])


def test_what_a_restriction_of_a_source_comes_to_is_a_constraint(tmp_path):
    """Of a true bound it was refused: no fact says that number."""
    core, file = load_target("cortex-m4"), tmp_path / "a.elf"
    (tmp_path / "guest.c").write_text(SOURCE)
    file.write_bytes(image_of(SOURCE, core, ".c").elf)
    found = bound_firmware(FirmwareRequest(file, "summed", core, [], [tmp_path], {}))
    document = json.loads(json.dumps(firmware_document(found)))
    claim = max(document["bound"]["flow_claims"], key=lambda one: one["constant"])
    assert claim["constant"] == 40

    def answer():
        data = json.dumps(document).encode()
        return check_file_result(document, data, file.read_bytes(), source_dirs=[tmp_path])[0]

    assert {one.check for one in answer().findings if one.verdict != "ok"} <= {
        "constraints in instructions", "constraints in cycles",
    }  # fmt: skip
    claim["constant"] -= 1
    document["bound"]["digest"] = bound_digest(document["bound"])
    with pytest.raises(WcetProbeError, match=r"no fact at .* says"):
        answer()

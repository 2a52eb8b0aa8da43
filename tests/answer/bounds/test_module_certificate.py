"""Module certificates are searched for until it is clear that there is none; the checker tests what they say."""

import pytest

from tests.support import images_dir
from wcet_probe.analyzer.bound import prepare
from wcet_probe.answer.bounds import module_certificate as module
from wcet_probe.answer.bounds.proving import operation_request
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.certificate.kernel.coverage import code_of
from wcet_probe.certificate.kernel.records import read_records
from wcet_probe.certificate.modules.module import ROLES, operation_of
from wcet_probe.certificate.modules.module_machine import ModuleMachine
from wcet_probe.errors import AnalysisError

HEAP_BYTES = 5000


@pytest.fixture(scope="module")
def operations():
    """Of buddy-binary, whose stores are not followed, as its base may be a link as well."""
    program = load_program(load_allocator("buddy-binary"), load_target("mpc603e"), "zig", images_dir())
    found = []
    for role in ROLES:
        problem = module._problem(program, prepare(operation_request(program, role, HEAP_BYTES)))
        found.append(operation_of(role, read_records(module._text(program, problem, apart=False))))
    return program, found


def search(operations):
    program, found = operations
    return module._Search(program.image, code_of(program.image, program.instructions), found)


def test_nothing_is_executed_behind_a_store_that_is_lost(operations, monkeypatch):
    lost, executed = [], module._Search._execute

    def told(self, *arguments):
        assert not lost
        try:
            executed(self, *arguments)
        except AnalysisError as error:
            lost.append(str(error))
            raise

    monkeypatch.setattr(module._Search, "_execute", told)
    with pytest.raises(AnalysisError, match="is not known to the checker's rules"):
        search(operations).run(of_init=False)
    assert len(lost) == 1


def test_a_store_that_is_lost_once_stays_lost(operations, monkeypatch):
    """What words are made of only grows: where all is followed to the end, the store is among those left."""
    with pytest.raises(AnalysisError) as first:
        search(operations).run(of_init=False)
    monkeypatch.setattr(module._Growing, "store", ModuleMachine.store)
    to_the_end = search(operations)
    with pytest.raises(AnalysisError):
        to_the_end.run(of_init=False)
    image = operations[0].image
    assert any(f"at {image.location(one)} goes" in str(first.value) for one in to_the_end.unknown)

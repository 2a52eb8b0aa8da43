"""A folder for scripts is refused before minutes go into what would be written there."""

import pytest

from wcet_probe.cache_sets.question_scripts import ready_for_scripts
from wcet_probe.cli import main
from wcet_probe.errors import WcetProbeError


def test_a_folder_is_made_and_stays_empty(tmp_path):
    ready_for_scripts(tmp_path / "new" / "questions")
    assert list((tmp_path / "new" / "questions").iterdir()) == []


def test_a_file_of_another_name_stays(tmp_path):
    tmp_path.joinpath("questions").write_text("mine")
    ready_for_scripts(tmp_path)
    assert tmp_path.joinpath("questions").read_text() == "mine"


def test_scripts_of_another_run_are_not_mixed_with_those_of_this_one(tmp_path):
    tmp_path.joinpath("free-1-bits.smt2").touch()
    with pytest.raises(WcetProbeError, match="holds scripts of another run; name another folder"):
        ready_for_scripts(tmp_path)


@pytest.mark.parametrize(
    "command", [("verify-sets", "cama", "--deduce", "all"), ("facts", "cama", "--prove", "--deduce")]
)
def test_a_folder_that_cannot_be_made_is_told_before_anything_is_deduced(command, tmp_path, capsys):
    file = tmp_path / "file"
    file.touch()
    assert main([*command, "--target", "mpc603e", "--smt-lib", str(file / "questions")]) == 1
    # by name of the trial: of a script it would be told minutes later
    assert f"cannot write {file / 'questions' / 'questions'}" in capsys.readouterr().err

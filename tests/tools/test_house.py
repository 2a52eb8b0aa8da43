"""The numbers of the house are counted on the tree itself, links inside it not twice."""

import graphlib
import importlib.util
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("house", Path(__file__).parents[2] / "tools" / "house.py")
house = importlib.util.module_from_spec(spec)
spec.loader.exec_module(house)


@pytest.fixture
def checkout(tmp_path):
    files = {
        "analyzer/__init__.py": "",
        "analyzer/bound.py": "from wcet_probe.analyzer.ipet import solver\nimport wcet_probe.sizes\n",
        "analyzer/ipet/__init__.py": "",
        "analyzer/ipet/solver.py": "from wcet_probe.sizes import parse\nfrom wcet_probe.sizes import size\nimport os\n",
        "wcet_probe/__init__.py": "",
        "wcet_probe/sizes.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "wcet_probe" / "analyzer").symlink_to("../analyzer")
    return tmp_path


def test_a_small_house_is_counted(checkout):
    found = dict(house.rows(checkout))
    assert found["modules of the package, lines"] == "6, 5"
    assert found["folders with modules, and modules at the top"] == "4"  # the package, sizes, analyzer, ipet
    assert found["floors: the longest chain of folders"] == "3"
    assert found["arrows between modules, between folders"] == "3, 3"


def test_rooms_that_import_each_other_have_no_floors(checkout):
    (checkout / "wcet_probe" / "sizes.py").write_text("import wcet_probe.analyzer.bound\n")
    with pytest.raises(graphlib.CycleError):
        dict(house.rows(checkout))

"""The wheel and the source archive hold what an installation needs, and nothing of the place they were built in."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("allocators", "analyzer", "emu", "reports", "scenarios", "targets", "guest")
LEAVINGS = ("__pycache__", "/.venv", "/.git/", "/build/lib", "/dist/")


@pytest.fixture(scope="module")
def source_archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sdist")
    script = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
    subprocess.run([sys.executable, "-c", script, str(folder)], cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def wheel(source_archive, tmp_path_factory):
    """The wheel, built from the source archive: so both are known to be complete."""
    folder = tmp_path_factory.mktemp("wheel")
    return wheel_of(unpacked(source_archive, folder), folder)


def unpacked(source_archive, folder):
    with tarfile.open(source_archive) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # the first patch levels of 3.11 have none
        archive.extractall(folder)  # noqa: S202  (our own archive)
    (source,) = folder.iterdir()
    return source


def wheel_of(source, folder):
    """By the hook that pip calls: pip itself takes as long again."""
    script = "import sys; from scikit_build_core.build import build_wheel; build_wheel(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder)], cwd=source, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.mark.slow
def test_an_archive_that_holds_the_links_as_plain_files_gives_the_same_wheel(names, source_archive, tmp_path):
    """As some tools pack and unpack a repository."""
    folder = unpacked(source_archive, tmp_path)
    for package in PACKAGES[:-1]:
        (folder / "wcet_probe" / package).write_text(f"../{package}")
    path = wheel_of(folder, tmp_path)
    with zipfile.ZipFile(path) as archive:
        assert sorted(archive.namelist()) == sorted(names)


@pytest.fixture(scope="module")
def names(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_tag_any_python_this_platform(wheel):
    assert "-py3-none-linux_" in wheel.name


@pytest.mark.parametrize("package", PACKAGES)
def test_every_folder_of_the_tree_is_a_subpackage(names, package):
    folder = ROOT / ("wcet_probe/guest" if package == "guest" else package)
    kept = {
        f"wcet_probe/{package}/{path.relative_to(folder)}"
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert kept
    assert kept <= set(names)


def test_the_native_cores_and_the_marker_of_types_are_there(names):
    assert {"wcet_probe/emu/_native.so", "wcet_probe/analyzer/native/_run.so"} <= set(names)
    assert "wcet_probe/py.typed" in names


def test_licences_are_there(names):
    assert {name.split("/licenses/")[1] for name in names if "/licenses/" in name} == {"LICENSE", "LICENSES/0BSD.txt"}


def test_nothing_else_is_there(names):
    tops = {name.split("/")[0] for name in names}
    assert tops == {"wcet_probe", next(top for top in tops if top.endswith(".dist-info"))}
    assert not [name for name in names if any(leaving in f"/{name}" for leaving in LEAVINGS)]


def test_no_path_of_the_building_machine(wheel):
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if str(ROOT).encode() in archive.read(name)]


def test_source_archive_is_clean(source_archive):
    with tarfile.open(source_archive) as archive:
        names = [name.split("/", 1)[1] for name in archive.getnames() if "/" in name]
    assert {"CMakeLists.txt", "pyproject.toml", "README.md", "Makefile"} <= set(names)
    assert not [name for name in names if any(leaving in f"/{name}" for leaving in LEAVINGS)]
    assert not [name for name in names if name.startswith("build/")]


def test_the_installed_wheel_finds_its_data(wheel, tmp_path):
    """Unpacked and imported far from the source tree, without the editable installation's finder."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)  # noqa: S202  (our own archive)
    script = (
        "import sys; sys.meta_path[:] = [f for f in sys.meta_path if 'ScikitBuild' not in type(f).__name__];"
        "sys.path.insert(0, sys.argv[1]); from wcet_probe.catalog import resources;"
        "print(*sorted(e.name for n in ('allocators', 'guest', 'targets') for e in resources.folder(n).iterdir()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert "tlsf" in done.stdout.split()

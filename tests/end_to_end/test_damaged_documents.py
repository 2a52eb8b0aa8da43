"""Documents from anybody, with a value changed, put in or left out: one sentence, whichever command reads them."""

import copy
import json
import random
from functools import cache

import pytest

from tests.results import result
from tests.support import image_of, images_dir
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.kernel.verify import bound_digest
from wcet_probe.cli import main
from wcet_probe.errors import ExitCode

MOST_CHARACTERS = 1200
VALUES = (None, True, -1, 0, 1 << 70, 0.5, "", "x" * 100_000, "0x00000000", "\n", [], {}, [[]], {"a": 1}, [None] * 3)
COMMANDS = {
    "diff": ("diff", "{}", "good.json"),
    "diff from it": ("diff", "good.json", "{}"),
    "plot": ("plot", "{}", "--kind", "bound-against-observed", "-o", "picture.svg"),
    "plot code": ("plot", "{}", "--kind", "control-flow-graph", "-o", "picture.svg"),
    "plot calls": ("plot", "{}", "--kind", "call-graph", "-o", "picture.svg"),
    "plot gaps": ("plot", "{}", "--kind", "gap-bars", "-o", "picture.svg"),
    "plot heaps": ("plot", "{}", "--kind", "wcet-against-heap", "-o", "picture.svg"),
    "plot sets": ("plot", "{}", "--kind", "heat-strip", "-o", "picture.svg"),
    "export": ("export", "{}", "--format", "callgrind", "-o", "profile"),
    "export worst": ("export", "{}", "--format", "speedscope", "--path", "worst-cycles", "-o", "profile"),
    "verify": ("verify", "{}"),
    "verify image": ("verify", "{}", "--image", "guest.elf"),
    "check": ("check", "--results", "{}"),
    "pack": ("pack", "{}", "--image", "guest.elf", "-o", "evidence.zip", "-q"),
    "report": ("report", "{}", "-o", "dossier", "-q"),
}
ALLOWED = {int(code) for code in ExitCode}
BUDGET = '[[budgets]]\nallocator = "tlsf"\noperation = "malloc"\ntarget = "cortex-m4"\nheap = "8KiB"\n'


@cache
def originals():
    whole = result("tlsf", "cortex-m4", heap_bytes=8192, why=True)
    with pytest.MonkeyPatch.context() as patch:
        printed = []
        patch.setattr("wcet_probe.cli.streams.print_json", printed.append)
        elf = images_dir() / "guest.elf"
        elf.write_bytes(guest())
        assert main(["bound", str(elf), "--entry", "f", "--json", "-q"]) == 0
    return whole, json.loads(json.dumps(printed[0]))


@cache
def guest():
    source = "int f(int n) { int k = 0; for (int i = 0; i < 7; i++) k += n * i; return k; }"
    return image_of(source, load_target("cortex-m4"), ".c").elf


def places(value, path=()):
    yield path
    for key, item in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
        yield from places(item, (*path, key))


def damaged(seed):
    """A document with something changed; with a digest that is right, if there is one to be made."""
    draw = random.Random(seed)
    document = copy.deepcopy(originals()[seed % 2])
    shapes = {}
    for path in places(document):
        shapes.setdefault(tuple(key for key in path if isinstance(key, str)), []).append(path)
    for _ in range(draw.choice((1, 1, 2))):
        path = draw.choice(shapes[draw.choice(sorted(shapes)[1:])])
        change(draw, document, path)
    bound = document.get("bound")
    if isinstance(bound, dict) and draw.random() < 0.7:
        bound["digest"] = bound_digest(bound)
    return document


def change(draw, document, path):
    parent = document
    try:
        for key in path[:-1]:
            parent = parent[key]
        old = parent[path[-1]]
        match draw.randrange(5):
            case 0:
                del parent[path[-1]]
            case 1:
                parent[path[-1] if isinstance(parent, list) else "unknown" * 20_000] = draw.choice(VALUES)
            case 2 if isinstance(old, int):
                parent[path[-1]] = draw.choice((old + 1, old - 1, -old, 1 << 64))
            case 3 if isinstance(old, str):
                parent[path[-1]] = draw.choice((old + "0", old[:-1], old.replace("0", "1", 1), old[::-1]))
            case _:
                parent[path[-1]] = draw.choice(VALUES)
    except (KeyError, IndexError, TypeError):
        return  # the place went with an earlier change


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WCET_PROBE_CACHE_DIR", str(images_dir()))
    (tmp_path / "wcet-probe.toml").write_text(BUDGET)
    (tmp_path / "guest.elf").write_bytes(guest())
    return tmp_path


def troubles(folder, capsys, seeds, commands):
    found = []
    for seed in seeds:
        document = damaged(seed)
        (folder / "bad.json").write_text(json.dumps(document))
        (folder / "good.json").write_text(json.dumps(originals()[seed % 2]))
        for name in commands:
            try:
                code = main([word.format("bad.json") for word in COMMANDS[name]])
            except BaseException as error:  # noqa: BLE001  (whatever it is, it is a trouble)
                code = repr(error)[:200]
            err = capsys.readouterr().err
            if code not in ALLOWED or len(err) > MOST_CHARACTERS or err.count("\n") > 1 or "bug of wcet-probe" in err:
                found.append((seed, name, code, err[:300], len(err)))
    return found


QUICK = [name for name in COMMANDS if name not in {"report", "pack", "verify image"}]


def test_a_damaged_document_is_one_sentence(folder, capsys):
    assert not troubles(folder, capsys, range(20), QUICK)
    assert not troubles(folder, capsys, range(100, 104), ["verify image", "pack"])
    assert not troubles(folder, capsys, range(200, 202), ["report"])


@pytest.mark.slow
@pytest.mark.parametrize("slice_", range(10))
def test_damaged_documents_are_one_sentence(folder, capsys, slice_):
    assert not troubles(folder, capsys, range(1000 + 80 * slice_, 1080 + 80 * slice_), [*COMMANDS])

"""Sections of a dossier: the item under analysis, the claim, and the target configuration with its sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from wcet_probe.reports.dossier.blocks import Blank, Block, Code, KeyValues, Paragraph, Section, Table
from wcet_probe.reports.dossier.code_check import code_check_words
from wcet_probe.reports.dossier.grounds import Numbers, range_of
from wcet_probe.reports.dossier.subject import (
    Answer,
    Json,
    Subject,
    cache_words,
    caches_words,
    left_out,
    number,
    parameter_words,
    picture,
    unique,
)
from wcet_probe.sizes import format_size

_FUNCTIONS_SHOWN = 40
_CALLERS = "no run can check it: it is the caller's"
"""How facts about arguments are checked."""


def item_section(subject: Subject, *, full: bool) -> Section:
    """What was analysed: allocator or function, and each image with its compiler and hashes."""
    document, manifest = subject.first, subject.first.get("allocator_manifest") or {}
    rows = [("Subject", subject.title)]
    if manifest:
        rows += [("Title", manifest["title"]), ("Summary", manifest["summary"])]
        rows.append(
            ("Entry points", ", ".join(f"`{name}` ({role})" for role, name in sorted(manifest["entry_points"].items())))
        )
    if document.get("parameters"):
        rows.append(("Build parameters", parameter_words(document["parameters"])))
    rows += [("Literature", source) for source in manifest.get("literature", ())]
    images: dict[str, list[Json]] = {}
    for answer in subject.answers:
        images.setdefault(answer.document["image"]["sha256"], []).append(answer.document)
    parts = [_image(group, subject.anchor, place, full=full) for place, group in enumerate(images.values(), 1)]
    blank = Blank(
        "Revision of the source in configuration management; part number and link map of the delivered image."
    )
    return Section("Item under analysis", f"item-{subject.anchor}", (KeyValues(tuple(rows)), blank), tuple(parts))


def _image(documents: Sequence[Json], anchor: str, place: int, *, full: bool) -> Section:
    """One image, of which all ``documents`` are."""
    document, image = documents[0], documents[0]["image"]
    rows = [("SHA-256 of the ELF file", image["sha256"])]
    if image.get("size_bytes"):
        rows.append(("Size", f"{image['size_bytes']:,} bytes"))
    if image.get("compiler"):
        rows += [("Compiler", image["compiler"]), ("Options", "`" + " ".join(image["flags"]) + "`")]
    blocks: list[Block] = [KeyValues(tuple(rows))]
    sources = (document.get("allocator_manifest") or {}).get("sources") or document.get("sources") or ()
    hashed = [(one["name"], one["sha256"]) for one in sources if isinstance(one, Mapping)]
    if hashed:
        blocks.append(Table("Sources", ("File", "SHA-256"), tuple(hashed), "cc"))
    elif sources:
        blocks.append(KeyValues((("Sources", ", ".join(map(str, sources))),)))
    reached = {one["address"]: one for other in documents for one in other["image"].get("functions") or ()}
    functions = [reached[address] for address in sorted(reached)]
    shown = functions if full else functions[:_FUNCTIONS_SHOWN]
    if shown:
        header = ("Function", "Address", "Bytes", "SHA-256 of its code")
        cells = tuple((one["name"], one["address"], number(one["size_bytes"]), one["sha256"]) for one in shown)
        blocks.append(Table("Functions that the bound or the observation reaches", header, cells, "ccrc"))
        blocks += left_out(functions, len(shown), "functions")
    if not image.get("compiler"):
        blocks.append(Blank("Compiler, linker and their options: the file was analysed as it was given."))
    return Section(f"Image {image['sha256'][:12]}", f"image-{place}-{anchor}", tuple(blocks))


def claim_section(subject: Subject, numbers: Numbers, *, pictured: bool) -> Section:
    """What is claimed, entry point by entry point; ``numbers`` has the number of each assumption."""
    from wcet_probe.reports.pictures import bound_against_observed  # noqa: PLC0415  (drawn only here)

    proofs = subject.proofs()
    blocks: list[Block] = [Paragraph(_claim(answer, numbers), "lead") for answer in proofs]
    without = [answer for answer in subject.answers if answer.bound is None]
    blocks += [Paragraph(f"{answer.label}: {_why_none(answer)}", "lead") for answer in without]
    header = ("Call", "Heap", "Bound, instructions", "Observed", "Bound, cycles", "Observed", "Verdict")
    rows = tuple(_claim_row(answer) for answer in subject.answers)
    blocks.append(Table("Claims, each beside an observation", header, rows, "lrrrrrl"))
    if pictured:
        alternative = "For each result a bar from the observation to the bound; the numbers are those of the table."
        documents = [answer.document for answer in subject.answers]
        blocks += picture("Bounds against observations", alternative, bound_against_observed(documents))
    blocks.append(Paragraph(_validity(subject)))
    unproved = "Cache misses, touched cache sets and stack are reported as observed; no bound of them is claimed."
    blocks.append(Paragraph(unproved, "note"))
    prompt = "Clock of the core in the final configuration; requirement and budget of each entry point, and the margin."
    blocks.append(Blank(prompt))
    return Section("Claim", f"claim-{subject.anchor}", tuple(blocks))


def _claim(answer: Answer, numbers: Numbers) -> str:
    bound, document = answer.bound or {}, answer.document
    under = range_of(bound, numbers)
    heap = f", heap {answer.heap}," if document.get("heap_bytes") else ""
    return (
        f"No call of `{answer.entry}` on {document['target']}{heap} takes more than {bound['instructions']:,} "
        f"instructions or {number(bound['cycles'])} cycles of the target's model, under {under}. "
        f"Of this bound: {code_check_words(answer)}."
    )


def _why_none(answer: Answer) -> str:
    if answer.document.get("no_bound"):
        return f"no bound is claimed, as none could be proved: {answer.document['no_bound']}"
    return "no bound is claimed; none was asked for. What was observed is no upper limit."


def _claim_row(answer: Answer) -> tuple[str, ...]:
    bound, seen = answer.bound or {}, answer.witnessed or {}
    counts = [part.get(unit) for unit in ("instructions", "cycles") for part in (bound, seen)]
    verdict = answer.document.get("verdict", "BOUNDED")
    scenario = answer.document.get("scenario")
    call = f"{answer.entry}, {scenario}" if scenario else answer.entry
    return call, answer.heap, *map(number, counts), verdict


def _validity(subject: Subject) -> str:
    facts = [one for answer in subject.proofs() for one in (answer.bound or {})["assumptions"]]
    restricted = any(one["id"].startswith("fact") and one["check"] == _CALLERS for one in facts)
    given = unique(parameter_words((answer.bound or {})["parameters"]) for answer in subject.proofs())
    context = f"Values of the parameters that the proof uses: {'; '.join(given)}. " if any(given) else ""
    ranges = "as far as the facts about them hold" if restricted else "whatever they are"
    return (
        f"Unit: executed instructions, and cycles of the target's timing table. {context}A bound is of a whole "
        f"call, from the first instruction of the entry to its return; of the arguments, {ranges}; in whatever state "
        "the heap and the caches are, as far as the assumptions allow it."
    )


# --------------------------------------------------------------------------------------------------------------- target


def target_section(subjects: Sequence[Subject]) -> Section:
    """The target configurations, each once, with the source of every number."""
    found: dict[str, Json] = {}
    for answer in chain.from_iterable(subject.answers for subject in subjects):
        found.setdefault(f"{answer.document['target']} {caches_words(answer.document)}", answer.document)
    parts = tuple(_target(document, place) for place, document in enumerate(found.values(), 1))
    blocks: tuple[Block, ...] = (
        Paragraph("Every number has a source and a basis: read in a manual, measured, or assumed."),
        Blank("Confirmation that clock, wait states, caches and memory protection of the product are set like this."),
    )
    return Section("Target configuration", "target", blocks, parts)


def _target(document: Json, place: int) -> Section:
    name, anchor = document["target"], f"target-{place}"
    target = document.get("target_configuration")
    caches = document.get("caches") or (target or {}).get("caches") or {}
    memory = document.get("memory") or (target or {}).get("memory") or {}
    blocks: list[Block] = []
    if target:
        blocks += [KeyValues(_core(target)), Paragraph(_bases(target, caches))]
    blocks += _hardware(caches, memory, unified=bool((target or {}).get("unified_cache")))
    if target:
        header = ("Instruction class", "Cycles", "Basis", "Source and note")
        rows = [(name, _cycles(one), one["basis"], _source(one)) for name, one in sorted(target["timing"].items())]
        failed = target["condition_failed"]
        rows.append(("(condition fails)", _cycles(failed), failed["basis"], _source(failed)))
        blocks.append(Table("Timing by instruction class", header, tuple(rows), "clll"))
        if target.get("stalls"):
            header = ("Wait between neighbours", "Cycles", "Basis", "Source and note")
            waits = tuple((one["name"], str(one["cycles"]), one["basis"], _source(one)) for one in target["stalls"])
            blocks.append(Table("Waits of an instruction for the result of one before it", header, waits, "lcll"))
        blocks.append(Paragraph("Choices of the model:"))
        blocks.append(Code("Modelling choices", "\n".join(f"- {text}" for text in target["modelling_choices"])))
    elif not memory:
        blocks.append(Blank(f"The configuration of {name}: the result document does not hold it."))
    title = f"{name}, {caches_words(document)}" if caches_words(document) else name
    return Section(title, anchor, tuple(blocks))


def _core(target: Json) -> tuple[tuple[str, str], ...]:
    order = "big-endian" if target["big_endian"] else "little-endian"
    places = target["memory_map"]
    ranges = [
        f"{name} from {places[name]['base_address']:#010x}, {format_size(places[name]['size_bytes'])}"
        for name in ("code", "data", "stack")
    ]
    return (
        ("Core", target.get("title", target["name"])),
        ("Instruction set", f"{target['isa']}, {order}"),
        ("Memory map", "; ".join([*ranges, f"heap from {places['heap_address']:#010x}"])),
        ("Model of the emulator", f"`{target['emulator_model']}`"),
        ("Model of the analysis", f"`{target['pcode_language']}`"),
    )


def _bases(target: Json, caches: Json) -> str:
    bases = target.get("bases")
    if bases is None:  # a result of an earlier version
        parts = [*target["timing"].values(), target["condition_failed"], *filter(None, caches.values())]
        bases = Counter(one["basis"] for one in [*parts, *(one for _, one in _latencies(target["memory"]))])
    counts = [f"{bases[basis]} {words}" for basis, words in _BASES.items() if bases[basis]]
    return f"Of {sum(bases.values())} numbers of the timing model, {', '.join(counts)}."


def _latencies(memory: Json) -> Iterator[tuple[str, Json]]:
    """Every number of the memory, with a name."""
    for key, one in memory.items():
        if isinstance(one, Mapping):
            yield _spelled(key), one
    for region in memory.get("regions") or ():
        for key in ("read_cycles", "write_cycles"):
            yield f"{region['name']}, {_spelled(key).lower()}", region[key]


def _spelled(key: str) -> str:
    return key.replace("_", " ").capitalize()


_BASES = {"manual": "were read in a manual", "measured": "were measured", "assumed": "are assumed"}


def _hardware(caches: Json, memory: Json, *, unified: bool) -> Iterator[Block]:
    names = {"dcache": "Unified cache"} if unified else {"icache": "Instruction cache", "dcache": "Data cache"}
    rows = []
    for key, words in names.items() if caches else ():
        cache = caches.get(key)
        writes = f", {_writes(cache)}" if cache and key == "dcache" else ""
        rows.append((words, cache_words(cache) + writes, *_origin(cache)))
    rows += [(words, f"{one['value']:,}", *_origin(one)) for words, one in _latencies(memory)]
    rows += [
        (region["name"], f"not cached, from {region['extent']['base_address']:#010x}, {_size(region)}", "—", "—")
        for region in memory.get("regions") or ()
    ]
    if rows:
        yield Table("Caches and memory", ("Part", "Configuration", "Basis", "Source"), tuple(rows), "llll")


def _size(region: Json) -> str:
    return format_size(region["extent"]["size_bytes"])


def _origin(part: Json | None) -> tuple[str, str]:
    return (part["basis"], part["source"]) if part else ("—", "—")


def _writes(cache: Json) -> str:
    policy = "write-back" if cache["write_back"] else "write-through"
    return f"{policy}, {'with' if cache['write_allocate'] else 'without'} write-allocate"


def _cycles(timing: Json) -> str:
    extra = {
        "per_register_cycles": "for each register",
        "literal_cycles": "if the address is relative to the program counter",
        "load_use_cycles": "if the next instruction uses the value",
        "taken_cycles": "if taken",
    }
    parts = [str(timing["cycles"]), *(f"{timing[key]} {words}" for key, words in extra.items() if timing.get(key))]
    return " + ".join(parts)


def _source(timing: Json) -> str:
    return "; ".join(filter(None, (timing["source"], timing["note"])))

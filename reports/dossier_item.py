"""Sections of a dossier: the item under analysis, the claim, and the target configuration with its sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from wcet_probe.reports.dossier_blocks import Blank, Block, Code, KeyValues, Paragraph, Section, Table
from wcet_probe.reports.dossier_subject import (
    Answer,
    Json,
    Subject,
    cache_words,
    caches_words,
    counted,
    left_out,
    number,
    operation,
    parameter_words,
    unique,
)
from wcet_probe.sizes import format_size

_FUNCTIONS_SHOWN = 40


def item_section(subject: Subject, *, full: bool) -> Section:
    """What was analysed: allocator or function, and each image with its compiler and hashes."""
    document, manifest = subject.first, subject.first.get("allocator_manifest") or {}
    rows = [("Subject", subject.title)]
    if manifest:
        rows += [("Title", manifest["title"]), ("Summary", manifest["summary"])]
        rows.append(("Entry points", ", ".join(f"{role}: `{name}`" for role, name in manifest["entry_points"].items())))
    if document.get("parameters"):
        rows.append(("Build parameters", parameter_words(document["parameters"])))
    rows += [("Source", source) for source in manifest.get("literature", ())]
    images = {answer.document["image"]["sha256"]: answer.document for answer in subject.answers}
    parts = [_image(document, subject.anchor, place, full=full) for place, document in enumerate(images.values(), 1)]
    blanks = (
        Blank("Revision of the source in configuration management."),
        Blank("Part number of the software, and the link map of the delivered image."),
    )
    return Section("Item under analysis", f"item-{subject.anchor}", (KeyValues(tuple(rows)), *blanks), tuple(parts))


def _image(document: Json, anchor: str, place: int, *, full: bool) -> Section:
    image = document["image"]
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
    functions = image.get("functions") or ()
    shown = functions if full else functions[:_FUNCTIONS_SHOWN]
    if shown:
        header = ("Function", "Address", "Bytes", "SHA-256 of its code")
        cells = tuple((one["name"], one["address"], number(one["size_bytes"]), one["sha256"]) for one in shown)
        blocks.append(Table("Functions that the bound or the observation reaches", header, cells, "ccrc"))
        blocks += left_out(functions, len(shown), "functions")
    if not image.get("compiler"):
        blocks.append(Blank("Compiler, linker and their options: the file was analysed as it was given."))
    return Section(f"Image {image['sha256'][:12]}", f"image-{place}-{anchor}", tuple(blocks))


def claim_section(subject: Subject, numbers: Mapping[tuple[str, str], str]) -> Section:
    """What is claimed, entry point by entry point; ``numbers`` has the number of each assumption."""
    proofs = subject.proofs()
    blocks: list[Block] = [Paragraph(_claim(answer, numbers), "lead") for answer in proofs]
    for answer in subject.answers:
        if answer.bound is None:
            blocks.append(Paragraph(f"{answer.label}: {_why_none(answer)}", "lead"))
    header = ("Call", "Heap", "Bound, instructions", "Observed", "Bound, cycles", "Observed", "Verdict")
    rows = tuple(_claim_row(answer) for answer in subject.answers)
    blocks.append(Table("Claims, each beside an observation", header, rows, "lrrrrrl"))
    blocks.append(Paragraph(_validity(subject), "normal"))
    unproved = "Cache misses, touched cache sets and stack are reported as observed; no bound of them is claimed."
    blocks.append(Paragraph(unproved, "note"))
    blocks.append(Blank("Clock frequency of the core in the final configuration, which turns cycles into time."))
    blocks.append(Blank("Requirement and budget that each entry point has to meet, and the margin."))
    return Section("Claim", f"claim-{subject.anchor}", tuple(blocks))


def _claim(answer: Answer, numbers: Mapping[tuple[str, str], str]) -> str:
    bound, document = answer.bound or {}, answer.document
    ids = [numbers[one["id"], one["statement"]] for one in bound["assumptions"]]
    heap = f", heap {answer.heap}" if document.get("heap_bytes") else ""
    return (
        f"No call of `{answer.entry}` on {document['target']}{heap}, takes more than {bound['instructions']:,} "
        f"instructions or {number(bound['cycles'])} cycles of the target's model, under {assumption_range(ids)}."
    ).replace(f"{document['target']},", f"{document['target']}" if not heap else f"{document['target']},")


def assumption_range(ids: Sequence[str]) -> str:
    """``assumptions A-01 to A-04``: numbers in words, consecutive ones put together."""
    if not ids:
        return "no assumption but the conditions of use"
    runs: list[list[str]] = []
    for one in sorted(ids):
        if runs and int(one[2:]) == int(runs[-1][-1][2:]) + 1:
            runs[-1].append(one)
        else:
            runs.append([one])
    words = [run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
    return ("assumption " if len(ids) == 1 else "assumptions ") + ", ".join(words)


def _why_none(answer: Answer) -> str:
    if answer.document.get("no_bound"):
        return f"no bound is claimed, as none could be proved: {answer.document['no_bound']}"
    return "no bound is claimed; none was asked for. What was observed is no upper limit."


def _claim_row(answer: Answer) -> tuple[str, ...]:
    bound, seen = answer.bound or {}, answer.observed or {}
    counts = [part.get(unit) for unit in ("instructions", "cycles") for part in (bound, seen)]
    verdict = answer.document.get("verdict", "BOUNDED")
    scenario = answer.document.get("scenario")
    call = f"{answer.entry}, {scenario}" if scenario else answer.entry
    return call, answer.heap, *map(number, counts), verdict


def _validity(subject: Subject) -> str:
    facts = [one["id"] for answer in subject.proofs() for one in (answer.bound or {})["assumptions"]]
    given = unique(parameter_words((answer.bound or {})["parameters"]) for answer in subject.proofs())
    context = f"Values of the parameters that the proof uses: {'; '.join(given)}. " if any(given) else ""
    ranges = "as the flow facts restrict them" if any(one.startswith("fact") for one in facts) else "whatever they are"
    return (
        f"Unit: executed instructions, and cycles of the target's timing table. {context}The bound is of a whole call, "
        f"from the first instruction of the entry to its return; of the arguments, {ranges}; in whatever state the heap "
        "and the caches are, as far as the assumptions allow it."
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
    memory = document.get("memory") or (target or {}).get("memory")
    blocks: list[Block] = []
    if target:
        blocks += [KeyValues(_core(target)), Paragraph(_bases(target, caches))]
    blocks += _hardware(caches, memory)
    if target:
        header = ("Instruction class", "Cycles", "Basis", "Source and note")
        rows = [(name, _cycles(one), one["basis"], _source(one)) for name, one in sorted(target["timing"].items())]
        failed = target["condition_failed"]
        rows.append(("(condition fails)", _cycles(failed), failed["basis"], _source(failed)))
        blocks.append(Table("Timing by instruction class", header, tuple(rows), "clll"))
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
    parts = [*target["timing"].values(), target["condition_failed"], *target["memory"].values()]
    found = [one["basis"] for one in [*parts, *filter(None, caches.values())]]
    counts = [f"{found.count(basis)} {words}" for basis, words in _BASES.items() if basis in found]
    return f"Of {len(found)} entries, {', '.join(counts)}."


_BASES = {"manual": "were read in a manual", "measured": "were measured", "assumed": "are assumed"}


def _hardware(caches: Json, memory: Json | None) -> Iterator[Block]:
    header = ("Part", "Configuration", "Basis", "Source")
    rows = []
    for key, words in (("icache", "Instruction cache"), ("dcache", "Data cache")):
        cache = caches.get(key)
        writes = f", {_writes(cache)}" if cache and key == "dcache" else ""
        rows.append((words, cache_words(cache) + writes, *_origin(cache)))
    for key, one in (memory or {}).items():
        rows.append((key.removesuffix("_cycles").replace("_", " ").capitalize(), _latency(key, one), *_origin(one)))
    if caches or memory:
        yield Table("Caches and memory", header, tuple(rows), "llll")


def _latency(key: str, one: Json) -> str:
    return f"{one['value']:,} {'bytes' if key.endswith('_bytes') else 'cycles'}"


def _origin(part: Json | None) -> tuple[str, str]:
    return (part["basis"], part["source"]) if part else ("–", "–")


def _writes(cache: Json) -> str:
    policy = "write-back" if cache["write_back"] else "write-through"
    return f"{policy}, {'with' if cache['write_allocate'] else 'without'} write-allocate"


def _cycles(timing: Json) -> str:
    extra = {
        "per_register_cycles": "for each register",
        "load_use_cycles": "if the next instruction uses the value",
        "taken_cycles": "if taken",
    }
    parts = [str(timing["cycles"]), *(f"{timing[key]} {words}" for key, words in extra.items() if timing[key])]
    return " + ".join(parts)


def _source(timing: Json) -> str:
    return "; ".join(filter(None, (timing["source"], timing["note"])))


def overview_rows(subjects: Sequence[Subject]) -> tuple[tuple[str, ...], ...]:
    """A row for each answer of all subjects: what it is, bound, observation, verdict."""
    return tuple(
        (subject.title, operation(answer.document), answer.heap, *_claim_row(answer)[2:])
        for subject in subjects
        for answer in subject.answers
    )


def overview_note(subjects: Sequence[Subject]) -> str:
    """How many bounds are proved for how many subjects."""
    proofs = sum(len(subject.proofs()) for subject in subjects)
    return f"{counted(proofs, 'bound')} of {counted(len(subjects), 'subject')}."

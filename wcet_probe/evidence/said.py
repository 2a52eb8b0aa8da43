"""What a document says of its bound for people, computed again from binary, certificate and facts; the rest is named.

Names, places, lines, counts and causes follow from what is checked, and are demanded to the letter. What nothing in the
evidence tells again is the author's word: `AUTHORS_WORDS` and `words_of` list it, an audit prints the list, and a test
changes each value of a document to see that it is either refused or on the list.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from wcet_probe.certificate.check import Checked
from wcet_probe.certificate.facts.asserted import Asserted
from wcet_probe.certificate.facts.findings import OPEN, Finding
from wcet_probe.certificate.kernel.loops import demand, value_of
from wcet_probe.certificate.kernel.records import Records, read_records
from wcet_probe.evidence.frames import Frames
from wcet_probe.model.image import Image
from wcet_probe.model.induction import (
    DEDUCED_CHECK,
    DEDUCTION_PREMISES,
    LEMMA_CHECK,
    LEMMAS,
    PREMISE_CHECK,
    PREMISES,
    PROVED_CHECK,
)
from wcet_probe.model.instruction import Instruction
from wcet_probe.model.proof import INITIAL_DATA, Assumption
from wcet_probe.model.target import Target
from wcet_probe.reports.formats.listing import hex_address

Json = Mapping[str, Any]

AUTHORS_WORDS = "author's words"
"""The line of an audit that lists what nobody can compute again; it is never ok, and decides no exit code."""

_NO_RUN = "no run can check it"
_STACK = "no run can check it: emulated calls begin on the emulator's own stack; it is the caller's"
_WORDS: Mapping[str, tuple[str, str]] = {
    "no-interference": (
        "nothing else runs during the call: no interrupt, exception, DMA or other core",
        "no run can check it: the emulator has one core and nothing that interrupts it; it is the integrator's",
    ),
    "timing-model": (
        "the core takes the cycles of targets/{target}.toml",
        "no run can check it: the emulator counts by the same table",
    ),
    "no-translation-misses": (
        "{translation}",
        "no run can check it: no address is translated in the emulator; it is the integrator's",
    ),
    "aligned-accesses": (
        "{aligned}",
        "no run can check it: the emulator does not tell unaligned accesses apart; it is the developer's",
    ),
    "fifo-replacement": (
        "a first-in first-out cache has a counter for each set: what other sets fill moves no victim",
        "no run can check it: the emulator replaces the same lines; it is the integrator's",
    ),
    "stack-separation": (
        (
            "a store through a pointer that is not derived from the stack pointer misses the call's stack frames "
            "and what it is given on the stack, and a load through one finds none of their addresses"
        ),
        "every emulated run holds each store of such an instruction against it; runs are given nothing on the stack",
    ),
    "stack-stores": (
        "a store through a pointer that is derived from the stack pointer hits no static data",
        "no run looks at it; it is the developer's",
    ),
    "stack-bounds": ("the stack pointer is from {any} to {any} at entry: no address near it is 0", _STACK),
    "saved-registers": (
        (
            "no store but those that save registers changes a word that a function saved a register in, as long as "
            "the function has not given up that part of its stack"
        ),
        "every emulated run holds each store against it",
    ),
    "main-stack": (
        (
            "the call runs on the main stack (MSP), as exception handlers do, so that a write of PSP changes no "
            "stack in use"
        ),
        "no run can check it: the emulator runs calls on the main stack; it is the integrator's",
    ),
    "stack-alignment": ("the stack pointer is a multiple of 8 at entry, as the calling convention asks", _STACK),
    "return-address": ("functions return to their callers", "every call that the second engine repeats"),
    "alignment": ("no data access crosses a cache line at {places}", "every emulated run"),
    "call-returns": (
        "the call returns: control does not come to what never does, or is trapped, at {places}",
        "every emulated run returned",
    ),
    "stack-pointer": (
        "the stack pointer is {any} at entry",
        "every call of the function that is run begins with it",
    ),
    "initial-data": (
        "memory holds at entry what {any}; the call's stack is in none of them",
        "every call of the function that is run compares them",
    ),
    "built-for-another-core": ("{any}", "not checked: the integrator's"),
    **{f"induction {name}": (text, LEMMA_CHECK) for name, text in LEMMAS.items()},
    **{name: (text, PREMISE_CHECK) for name, text in {**PREMISES, **DEDUCTION_PREMISES}.items()},
}
"""What an assumption says, and how it is checked, by its id. Places are those that the prover found."""
_PLACES = r"\S+( \([^()]+:\d+\))?(, \S+( \([^()]+:\d+\))?)*"
_FACT_CHECKS = (
    "every emulated run counts the loop's iterations",
    "every emulated run holds each load of the word against it",
    "every emulated run holds each of these accesses against it",
    "every emulated run holds the sum of each call against it",
    "no run can check it: its blocks are executed outside of these calls too",
    "no run can check it: it is the caller's",
    "not checked: no run counts open calls",
    "every call that the second engine repeats",
    "no run can check it; the loops' own counts are checked",
    "no run can check it: the call is charged by its certificate",
)


def check_said(
    document: Json,
    image: Image,
    checked: Checked,
    asserted: Asserted,
    target: Target,
    *,
    of_build: Mapping[str, Assumption] = MappingProxyType({}),
    is_run: bool,
) -> None:
    """Check what the section ``bound`` says for people.

    Args:
        document: with a bound, valid under its schema.
        image: the binary.
        checked: what its certificates prove.
        asserted: the facts.
        target: the core.
        of_build: what is assumed because of how the binary was made, by id.
        is_run: whether anything was run; if not, no assumption is checked by runs.

    Raises:
        VerificationError: something is said otherwise than it follows.
    """
    bound = document["bound"]
    records = read_records(bound["certificates"][0])
    edges = {edge.name: edge for edge in checked.graph.edges}
    headers = {name: edges[back.split()[0]].target for name, _, _, back in records["loop"]}
    frames = Frames(checked.graph, image, checked.code)
    _check_loops(bound, image, checked, asserted, headers, frames=frames)
    _check_paths(bound, image, checked, frames)
    _check_graph(bound, checked, frames, records)
    _check_assumptions(bound, asserted, target, of_build, is_run=is_run)
    _check_claims(bound, asserted, read=document.get("sources", ()))
    _check_types(bound)
    cycles = read_records(bound["certificates"][-1])
    counts = {name: int(count) for name, count in cycles["count"]}
    unattributed = sum(int(cost) * counts.get(name, 0) for name, cost in cycles["event"]) if counts else None
    demand(bound["unattributed_cycles"] == unattributed, f"{unattributed} cycles belong to no block")


def _place(image: Image, address: int) -> tuple[str | None, int | None]:
    line = image.lines.find(address)
    return line or (None, None)


def _check_loops(
    bound: Json, image: Image, checked: Checked, asserted: Asserted, headers: Mapping[str, str], *, frames: Frames
) -> None:
    derived = {(one["loop"], one["max_header"], one["origin"]): one for one in checked.bounds[0].loops}
    for loop in bound["loops"]:
        name = loop["name"]
        header = headers.get(name)
        if header is None and bound.get("summarised"):
            continue  # of a call that is not expanded: its graph is not there
        if header is None:
            demand(condition=False, reason=f"the loop {name} is none of the certificate")
            continue
        address, _ = checked.graph.nodes[header]
        file, line = _place(image, address)
        context = [hex_address(int(site, 16)) for site in header.split("/")[:-1]]
        found = {
            "address": hex_address(address),
            "context": context,
            "location": image.location(address),
            "file": file or None,
            "line": line or None,
        }
        for key, value in found.items():
            demand(loop[key] == value, f"the {key} of the loop {name} is {value}")
        demand(loop["function"] == frames.functions[header], f"the loop {name} is not in {loop['function']}")
        own = derived[name, loop["max"], loop["origin"]]
        fact = None if loop["where"] is None else asserted.at(str(loop["where"]))
        demand(
            (loop["origin"] == "proved") == (loop["where"] is None), f"where the bound of {name} comes from is unclear"
        )
        demand(
            loop["origin"] == "proved" or loop["expression"] == own["expression"], f"the loop {name} has another bound"
        )
        because = fact.content.get("because") if fact is not None and fact.kind == "loop" else None
        demand((loop["because"] or None) == (because or None), f"the reason of {name} is not that of its fact")
        seen = loop["observed_max"]
        demand(seen is None or 0 <= seen <= loop["max"], f"the loop {name} was seen to run more often than its bound")


def _check_paths(bound: Json, image: Image, checked: Checked, frames: Frames) -> None:
    ends: dict[tuple[str, int], set[tuple[int, str]]] = {}
    for node, code in checked.code.items():
        context = node[: node.rfind("/") + 1]
        end_address = code[-1].address + code[-1].size_bytes
        ends.setdefault((context, code[0].address), set()).add((end_address, frames.functions[node]))
    for row in (*bound["worst_path"], *bound["worst_path_cycles"]):
        address = int(row["address"], 16)
        context = "".join(f"{int(site, 16):#x}/" for site in row["context"])
        found = ends.get((context, address), set())
        end_address = int(row["end_address"], 16)
        right = any(end_address == end for end, _ in found) and row["location"] == image.location(address)
        demand(right, f"the block at {row['address']} is said to be elsewhere")
        right = (end_address, row["function"]) in found
        demand(right, f"the block at {row['address']} is not in {row['function']}")


def _check_graph(bound: Json, checked: Checked, frames: Frames, records: Records) -> None:
    """Functions, ways and calls; addresses and counts are the checker's."""
    shown, nodes = bound["graph"], checked.graph.nodes
    blocks = {(frames.functions[node], address) for node, (address, _) in nodes.items()}
    for block in shown["blocks"]:
        right = (block["function"], int(block["address"], 16)) in blocks
        demand(right, f"the block at {block['address']} is not in {block['function']}")
    counts = {name: int(count) for name, count in records["count"]}
    is_counted = records["optimum"][0][0] != "none"
    shown_edges, calls = set[tuple[int, int, str]](), dict[tuple[str, str], int | None]()
    for edge in checked.graph.edges:
        kind = frames.kind(edge)
        shown_edges.add((nodes[edge.source][0], nodes[edge.target][0], kind))
        pair = frames.functions[edge.source], frames.functions[edge.target]
        if kind == "call" or (kind not in {"return", "unwind", "resume"} and pair[0] != pair[1]):
            calls[pair] = (calls.get(pair) or 0) + counts.get(edge.name, 0) if is_counted else None
    said = {(int(one["source"], 16), int(one["target"], 16), one["kind"]) for one in shown["edges"]}
    demand(said == shown_edges, "the edges that are shown go other ways")
    listed = {(one["caller"], one["callee"]): one["worst_executions"] for one in shown["calls"]}
    demand(listed == calls and len(listed) == len(shown["calls"]), "the calls that are shown are other ones")


def _check_assumptions(
    bound: Json, asserted: Asserted, target: Target, of_build: Mapping[str, Assumption], *, is_run: bool
) -> None:
    missing = of_build.keys() - {one["id"] for one in bound["assumptions"]}
    demand(not missing, f"the assumption {min(missing, default='')} is left out")
    lemmas = {str(fact.content.get("id")): str(fact.content.get("check")) for fact in asserted.of("lemma")}
    for one in bound["assumptions"]:
        name, kind = one["id"], one["id"].partition(" ")[0]
        if kind == "proved":
            deduced = {each["where"] for each in bound.get("pointer_facts", ()) if each.get("by") == "deduction"}
            allowed: Sequence[str] = (DEDUCED_CHECK if name.partition(" ")[2] in deduced else PROVED_CHECK,)
        elif kind in {"fact", "given", "lemma", "pragma", "rounds", "body"}:
            allowed = (lemmas.get(name.partition(" ")[2], ""),) if kind == "lemma" else _FACT_CHECKS
        elif name in of_build:
            demand(one["statement"] == of_build[name].statement, f"the assumption {name} says something else")
            allowed = (of_build[name].check,)
        else:
            demand(name in _WORDS, f"nobody knows the assumption {name}")
            statement, check = _WORDS[name]
            allowed = (check,)
            pattern = re.escape(statement).replace(re.escape("{target}"), re.escape(target.name))
            pattern = pattern.replace(re.escape("{translation}"), re.escape(target.translation or ""))
            pattern = pattern.replace(re.escape("{aligned}"), re.escape(target.aligned_accesses))
            pattern = pattern.replace(re.escape("{places}"), _PLACES).replace(re.escape("{any}"), ".+")
            demand(re.fullmatch(pattern, one["statement"]), f"the assumption {name} says something else")
        if not is_run:
            allowed = [each if each.startswith(_NO_RUN) else "not checked: nothing is run" for each in allowed]
            allowed += ["not checked: the integrator's"] if name == "built-for-another-core" else []
        demand(one["check"] in allowed, f"how the assumption {name} is checked is said otherwise")
        fact = asserted.at(name.partition(" ")[2])
        # Of own firmware, the arguments of the calls that were run are held against what is said of them.
        is_counted = not one["check"].startswith(_NO_RUN) or (is_run and fact is not None and fact.kind == "argument")
        demand(one["executions"] is None or is_counted, f"no run can have checked the assumption {name}")


def _check_claims(bound: Json, asserted: Asserted, *, read: Sequence[str]) -> None:
    kinds = ("rounds ", "pragma ", "body ")
    shared = {one["id"].partition(" ")[2] for one in bound["assumptions"] if one["id"].startswith(kinds)}
    constraints = re.findall(r"^constraint restriction:\d+ <= (\d+)", "\n".join(bound["certificates"]), re.MULTILINE)
    restricted = set(map(int, constraints))
    for claim in bound["flow_claims"]:
        fact = asserted.at(claim["where"])
        texts = [] if fact is None else [fact.expression(key) for key in ("max", "total", "max_calls")]
        # Of a fact for each call, of what is never executed, and of loops that share a count.
        allowed = {0} if fact is not None or claim["where"] in shared else set()
        allowed |= {value_of(text, bound["parameters"]) for text in texts if text is not None}
        # What a restriction, or pragmas of several loops, come to is a constraint of its own, which the checker says is
        # not checked.
        allowed |= restricted if claim["where"] in shared else set()
        demand(claim["constant"] in allowed, f"no fact at {claim['where']} says {claim['constant']}")
        seen = claim["observed"]
        demand(seen is None or seen <= claim["constant"], f"the sum at {claim['where']} was seen to be larger")
    # A pragma that is left out claims nothing, so that the file needs not be here: it is one that was read.
    files = {*read, *(asserted.sources or ())}
    for idle in bound["idle_facts"]:
        is_other = idle["where"] == INITIAL_DATA or idle["where"].rpartition(":")[0] in files
        demand(is_other or asserted.at(idle["where"]) is not None, f"no fact stands at {idle['where']}")


def _check_types(bound: Json) -> None:
    loops = {loop["name"]: loop for loop in bound["loops"]}
    for one in bound.get("by_type", ()):
        own = loops.get(one["loop"])
        right = own is not None and (own["location"], own["max"]) == (one["location"], one["max"])
        demand(right, f"the loop {one['loop']} is said to be elsewhere")


def check_gap(document: Json, image: Image, instructions: Sequence[Instruction]) -> None:
    """Check the section ``gap`` block by block; what was observed is known of the observed call alone.

    Raises:
        VerificationError: something is said otherwise than it follows.
    """
    gap, bound = document["gap"], document["bound"]
    if gap is None:
        return
    rows = {one.address: place for place, one in enumerate(instructions)}
    planned = _executed(bound["worst_path"], instructions, rows)
    total = sum(row["cost_instructions"] for row in bound["worst_path"])
    seen = document["witnesses"]["instructions"]
    distance = bound["instructions"] - seen["instructions"]
    demand(gap["instructions"] == distance, "the gap is not bound minus observation")
    demand(gap["above_worst_path"] == bound["instructions"] - total, "the worst path costs something else")
    same = seen["variant"] == document["state"]["variant"]
    observed = _executed(document["observed"]["runs"], instructions, rows) if same else None
    for one in gap["blocks"]:
        _check_gap_block(one, image, instructions, rows, planned=planned, observed=observed)
    parts = sum(one["instructions"] for one in gap["blocks"]) + gap["above_worst_path"]
    demand(parts == gap["instructions"], "the parts of the gap do not add up")


def _check_gap_block(
    one: Json,
    image: Image,
    instructions: Sequence[Instruction],
    rows: Mapping[int, int],
    *,
    planned: Counter[int],
    observed: Counter[int] | None,
) -> None:
    place = one["address"]
    first = rows.get(int(place, 16))
    demand(first is not None, f"no instruction stands at {place}")
    code = instructions[first or 0 : (first or 0) + len(one["code"])]
    texts = [f"{hex_address(each.address)} {each.text}" for each in code]
    demand(code and one["code"] == texts, f"the gap at {place} shows other code")
    demand(one["location"] == image.location(code[0].address), f"the gap at {place} is said to be elsewhere")
    worst, seen = one["bound_executions"], one["observed_executions"]
    right = all(planned[each.address] == worst for each in code)
    right = right and (observed is None or all(observed[each.address] == seen for each in code))
    demand(right and one["instructions"] == (worst - seen) * len(code), f"the gap at {place} is another one")
    demand(one["cause"] == _cause(worst, seen), f"the cause of the gap at {place} is another one")


def _cause(worst: int, seen: int) -> str:
    if worst == seen:
        return "same"
    if worst > seen:
        return "more often on the worst path" if seen else "only on the worst path"
    return "less often on the worst path" if worst else "only observed"


def _executed(rows: Sequence[Json], instructions: Sequence[Instruction], places: Mapping[int, int]) -> Counter[int]:
    found: Counter[int] = Counter()
    for row in rows:
        first = places.get(int(row["address"], 16))
        demand(first is not None, f"no instruction stands at {row['address']}")
        for one in instructions[first or 0 : (first or 0) + row["instructions"]]:
            found[one.address] += row["executions"]
    return found


def authors_words(document: Json, *, is_measured_again: bool = True) -> Finding:
    """What the document says that nothing in its evidence tells again; counts, too, unless they are measured again."""
    bound = document.get("bound")
    words = [*(_words_of_bound(bound) if bound else ()), *_words_of_result(document)]
    words += [] if is_measured_again else ["what was measured, which an audit measures again"]
    return Finding(AUTHORS_WORDS, OPEN, "; ".join(words) or "none")


def _words_of_bound(bound: Json) -> Iterator[str]:
    ids = [one["id"] for one in bound["assumptions"]]
    loops, claims = bound["loops"], bound["flow_claims"]
    seen = [loop["observed_max"] for loop in loops] + [one["observed"] for one in claims]
    seen += [block["observed_executions"] for block in bound["graph"]["blocks"]]
    facts = (
        claims or bound["idle_facts"] or any(one.startswith(("fact ", "pragma ", "rounds ", "body ")) for one in ids)
    )
    parts = (
        (any(loop["origin"] == "proved" for loop in loops), "how counters of loops are told"),
        (any(loop["total"] is not None for loop in loops), "totals of loops"),
        (bound.get("summarised"), "calls that are not expanded, and their loops"),
        (facts, "words about facts besides their reasons"),
        ({"alignment", "call-returns"} & set(ids), "places of assumptions"),
        (any(one["executions"] is not None for one in bound["assumptions"]), "how often assumptions were checked"),
        (any(one is not None for one in seen), "observations of loops, sums and blocks"),
        (bound.get("by_type"), "what bounds by type rest on"),
        (bound.get("pointer_facts"), "which alignments of pointers are proved"),
    )
    yield from (words for is_there, words in parts if is_there)


def _words_of_result(document: Json) -> Iterator[str]:
    parts = (
        (document["image"]["compiler"], "compiler and options"),
        (document.get("no_bound"), "why there is no bound"),
        (document.get("no_cross_check"), "why no second engine ran"),
        (document.get("cross_check"), "what the second engine counted"),
        (document.get("formula"), "the formula"),
        (document.get("fact_effects"), "effects of facts"),
        (document["format"] == "wcet-probe-bound" and document.get("observed"), "what was run"),
    )
    yield from (words for is_there, words in parts if is_there)

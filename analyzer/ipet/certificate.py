"""The certificate of a bound: a flow problem, a dual vector that proves its bound, and where the loop bounds come from.

The text lets `wcet_probe.certificate.kernel.verify` build the linear program again, without the analyzer and without a
solver. A line is a record, its first word the kind; fields stand between single spaces, names hold no white space,
numbers are integers or fractions in lowest terms. The records, in this order:

    wcet-probe certificate 1
    image SHA256
    entry-function NAME
    target NAME
    unit instructions | cycles
    bound N
    optimum N | none                    what the counts below reach
    node NAME ADDRESS COST              a basic block in a context; its cost by execution
    entry NODE                          the edge `enter` leads into it
    exit NODE COST                      the edge `leave:NODE` leads out of it; besides the cost of the node
    edge NAME SOURCE TARGET COST        besides the cost of the target
    event NAME COST                     happens besides, as often as constraints allow
    loop NAME MAX ENTRY… | BACK…        back edges taken, at most MAX times for each time an entry edge is taken
    constraint NAME <= N F EDGE …       sum of factor * edge or event; also with =
    dual NAME FRACTION                  `enter`, `flow:NODE`, `loop:LOOP`, or a constraint; 0 where it is not listed
    count NAME N                        of an edge or event: an integer solution; 0 where it is not listed
    derivation JSON                     a `LoopDerivation`
    invariant NODE PLACE BASE LOW STRIDE STEPS
                                        where NODE begins the register PLACE, or the word stack:OFFSET of the stack, or
                                        static:ADDRESS, is BASE + LOW + k * STRIDE for a k of 0 to STEPS, modulo 2**32;
                                        BASE is number (0), stack (its pointer at entry), link (the address to return
                                        to), or any (0; perhaps derived from the stack pointer). A register that is not
                                        listed is a number, which is not derived from the stack pointer
    flags NODE FLAGS SIGN KIND LOW STRIDE STEPS LOW STRIDE STEPS RELATIONS
                                        where NODE begins, what comparing two numbers left, see `decided_flags`
    equal NODE PLACE PLACE              where NODE begins, the places hold one value, see `equal_places`
    case NODE NUMBER PLACE BASE LOW STRIDE STEPS
    case-equal NODE NUMBER PLACE PLACE  where NODE begins, all records of one NUMBER hold, see `cases`
    excluded NODE ADDRESS | leave       control does not go there from NODE, as the analysis says; not checked
    symbol, name, shown, miss, paid, must, held, unchecked
                                        what is said of caches, see `annotated` and docs/explanation/certificates.md

Words: certificate, flow problem, dual (docs/explanation/glossary.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from wcet_probe.analyzer.ipet.flow_system import FlowProblem, Solution


@dataclass(frozen=True, slots=True)
class LoopDerivation:
    """How the number in a loop bound or constraint came about, so that it can be computed again.

    *Proved*: a counter has a value between ``initial_low`` and ``initial_high`` when it is first compared after an
    entry into the loop, is compared once for each execution of the header, changes by ``step`` from one comparison to
    the next without wrapping around, and the loop is left when ``counter comparison constraint`` fails, for a limit
    between ``limit_low`` and ``limit_high``. With ``!=``, counter and limit are constants, or the step is 1 or -1.

    *Fact* and *pragma*: ``expression`` is what was declared, in ``parameters``; operators ``+ - * // %``, functions
    ``min max ceil_log2 floor_log2``. It counts executions of the body in the source, of the header ``offset`` more.
    Fields of the other origin are None.

    Attributes:
        loop: name of the `FlowLoop`.
        constraint: name of what the number limits: ``loop:NAME``, or a constraint of the problem.
        origin: who says so.
        max_header: executions of the header for each entry, at most: one more than the back edges. Where the number
            limits a constraint of the problem, its constant.
        offset: 0 for a loop that tests at its end and for constraints of the problem, else 1.
        description: for people: function and source line.
    """

    loop: str
    constraint: str
    origin: Literal["proved", "fact", "pragma"]
    max_header: int
    initial_low: int | None = None
    initial_high: int | None = None
    step: int | None = None
    limit_low: int | None = None
    limit_high: int | None = None
    comparison: Literal["<", "<=", ">", ">=", "!="] | None = None
    expression: str | None = None
    parameters: Mapping[str, int] | None = None
    offset: int = 0
    description: str = ""


def graph_lines(problem: FlowProblem, certified: int, optimum: int | None) -> list[str]:
    """The records that a certificate begins with: what it is about, and the graph with what is charged.

    Soundness: as of `certificate`.
    """
    return [
        "wcet-probe certificate 1",
        f"image {problem.image_sha256}",
        f"entry-function {problem.entry_function}",
        f"target {problem.target}",
        f"unit {problem.unit}",
        f"bound {certified}",
        f"optimum {'none' if optimum is None else optimum}",
        *(f"node {node.name} {node.address:#x} {node.cost}" for node in problem.nodes),
        f"entry {problem.entry}",
        *(f"exit {name} {problem.exit_costs.get(name, 0)}" for name in problem.exits),
        *(f"edge {edge.name} {edge.source} {edge.target} {edge.extra_cost}" for edge in problem.edges),
    ]


def certificate(
    problem: FlowProblem,
    solution: Solution,
    derivations: Iterable[LoopDerivation] = (),
    followed: Iterable[str] = (),
) -> str:
    """The certificate as text; the same arguments give the same bytes.

    ``followed`` are the records of invariants and excluded ways, see `checkable`.

    Soundness: it claims nothing that the checker does not compute again, but for what it lists.
    """
    lines = graph_lines(problem, solution.certified, solution.optimum)
    lines += [f"event {auxiliary.name} {auxiliary.cost}" for auxiliary in problem.auxiliaries]
    for loop in problem.loops:
        words = ("loop", loop.name, str(loop.max_back_edges), *loop.entry_edges, "|", *loop.back_edges)
        lines.append(" ".join(words))
    for constraint in problem.constraints:
        terms = (f" {factor} {name}" for name, factor in sorted(constraint.coefficients.items()) if factor)
        lines.append(f"constraint {constraint.name} {constraint.relation} {constraint.constant}{''.join(terms)}")
    lines += [f"dual {name} {value}" for name, value in solution.dual.items() if value]
    lines += [f"count {name} {count}" for name, count in solution.counts.items() if count]
    lines += [f"derivation {json.dumps(asdict(derivation), sort_keys=True)}" for derivation in derivations]
    lines += followed
    return "\n".join(lines) + "\n"

"""Values of an operation once more, where loads from its stack give what it stored there, and loops end as facts tell.

An array on the stack that is loaded from at a computed place, such as a path down a tree, may give any word to the
value analysis, also an address of the stack: a store through it may then go anywhere. Here it is taken for no such
address, and how far its index goes follows from the bounds of loops, those of facts among them. That no address of the
stack is stored where such a load may go is checked of the result (`invariants.plain_frames`).

Words: loop bound, stack separation, lemma (docs/explanation/glossary.md).

*Soundness:* by induction over the loads of a call: each gives what the call has stored there before, as lemma
``stored-before-loaded`` says of its stack, and no store before put an address of the stack there. Nothing of a bound
rests on these values; what rests on them rests on the facts of loops besides.
"""

from __future__ import annotations

from functools import partial

from wcet_probe.analyzer.facts.binding import parameter_values
from wcet_probe.analyzer.facts.control import argument_ranges
from wcet_probe.analyzer.facts.memory import used_words, word_ranges
from wcet_probe.analyzer.loops.induction import analyze_within_bounds
from wcet_probe.analyzer.pcode.lift import image_lifter
from wcet_probe.analyzer.prepared import Prepared
from wcet_probe.analyzer.values.analysis import analyze_values
from wcet_probe.analyzer.values.result import Values
from wcet_probe.model.proof import Assumption


def frame_values(prepared: Prepared) -> tuple[Values, tuple[Assumption, ...]]:
    """The values of ``prepared`` again, on the same graph, and what they rest on besides: the facts of its loops.

    Raises:
        AnalysisError: a loop has no bound.
        UsageError: a flow fact is wrong.

    *Soundness:* as said of the module, where `require_plain_frames` accepts them.
    """
    request, image = prepared.request, prepared.request.image
    loops = prepared.bounded(request.parameters).loops
    parameters = parameter_values(request.facts, request.parameters, image)
    arguments = argument_ranges(request.facts, request.entry, image, parameters)
    words = word_ranges(used_words(request.facts, has_cache=request.target.dcache is not None), image, parameters)
    lifter = image_lifter(request.target.pcode_language, request.target.isa, image.segments)
    fixed = partial(analyze_values, image, lifter, prepared.values.graph, arguments, words, assumes_plain_frames=True)
    values = analyze_within_bounds(prepared.values, {one.header: one.max_header for one in loops.flow}, fixed)
    return values, tuple(loops.assumptions)

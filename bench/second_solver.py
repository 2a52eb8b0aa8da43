"""What another solver says of the questions that a deduction rests on: a table, a row for each file.

Run with ``python -m bench.second_solver [--work N] FOLDER`` on what ``wcet-probe verify-sets cama --deduce all
--smt-lib FOLDER`` or ``wcet-probe facts half-fit --prove --deduce --smt-lib FOLDER`` wrote. Each question is asked of
cvc5, one after another, and what it leaves open once more of a solver that was asked nothing before. cvc5 counts its
work, and stops by that, so that the answers repeat however fast the machine is. The exit code is 0 where each answer is
``unsat``, 4 where some are open, and 1 where one is ``sat``: then one of the solvers is wrong.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from wcet_probe.analyzer.deduction.other_solvers import CVC5_WORK, OPEN, SAT, UNSAT, Cvc5

CHECK = "(check-sat)"


def answers(script: str, work: int = CVC5_WORK) -> Iterator[str]:
    """What cvc5 answers to each question of ``script``: `UNSAT`, `SAT` or `OPEN`.

    Args:
        script: of SMT-LIB, a command in each line.
        work: units for each question, and twice as many where it is asked once more.
    """
    together = Cvc5(work)
    scopes: list[list[str]] = [[]]
    for line in script.splitlines():
        if line == CHECK:
            answer = together.told(line)
            if answer == OPEN:
                commands = [one for scope in scopes for one in scope]
                answer = Cvc5(2 * work, for_more=False).told("\n".join([*commands, line]))
            yield answer
            continue
        together.told(line)
        match line.split(" ")[0]:
            case "(push":
                scopes.append([])
            case "(pop":
                declared = [one for one in scopes.pop() if not one.startswith("(assert")]
                scopes[-1] += declared
            case _:
                scopes[-1].append(line)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table.

    Returns:
        The exit code.
    """
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("folder", type=Path, help="with files of SMT-LIB")
    parser.add_argument("--work", type=int, default=CVC5_WORK, help="units of cvc5's work for each question")
    options = parser.parse_args(arguments)
    print("| questions | unsat | sat | open | CPU s |\n|---|--:|--:|--:|--:|")
    total = Counter[str]()
    for file in sorted(options.folder.glob("*.smt2")):
        begin = time.process_time()
        found = Counter(answers(file.read_text("utf-8"), options.work))
        total += found
        each = " | ".join(f"{found[one]:,}" for one in (UNSAT, SAT, OPEN))
        print(f"| {file.stem} | {each} | {time.process_time() - begin:.1f} |", flush=True)
    print(f"\n{total[UNSAT]:,} of {total.total():,} are answered by unsat")
    return 1 if total[SAT] else 4 if total[OPEN] or not total else 0


if __name__ == "__main__":
    raise SystemExit(main())

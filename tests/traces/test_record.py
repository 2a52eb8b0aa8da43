"""Real programs recorded: built here from C where a compiler is, and Python's own interpreter."""

import subprocess
import sys
from collections import Counter

import pytest

from tests.allocators.host_compiler import CC
from wcet_probe.errors import UsageError
from wcet_probe.traces.file import read_trace
from wcet_probe.traces.operations import heap_operations
from wcet_probe.traces.record import record

THREADS = """
#include <pthread.h>
#include <stdlib.h>
static void *work(void *unused)
{
    for (int i = 0; i < 3000; i++) {
        char *a = malloc(10 + i % 7), *b = calloc(3, 5);
        a = realloc(a, 100);
        free(b);
        free(a);
    }
    return unused;
}
int main(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], 0);
    void *aligned;
    if (posix_memalign(&aligned, 64, 333))
        return 1;
    free(aligned);
    return 7;
}
"""


def built(folder, text):
    source, program = folder / "program.c", folder / "program"
    source.write_text(text)
    subprocess.run([*CC, "-O1", "-fno-builtin", "-o", program, source, "-lpthread"], check=True, capture_output=True)
    return str(program)


def test_all_threads_are_recorded_and_nothing_is_freed_that_is_not_held(tmp_path):
    trace = tmp_path / "trace.parquet"
    count, status = record([built(tmp_path, THREADS)], trace)
    rows = list(read_trace(trace))
    assert status == 7
    assert count == len(rows)
    kinds = Counter(row.kind for row in rows)
    assert kinds["realloc"] == 12_000
    assert kinds["calloc"] >= 12_000
    assert [row for row in rows if row.kind == "memalign"][-1][2:4] == (333, 64)
    assert {row.size_bytes for row in rows if row.kind == "realloc"} == {100}
    assert len(list(heap_operations(rows))) == len(rows) + kinds["realloc"]
    assert all(a.time_ns >= 0 for a in rows)


def test_a_program_keeps_its_output_and_its_children_are_not_recorded(tmp_path, capfd):
    script = (
        "import os, sys\nif os.fork() == 0:\n    x = [bytes(777) for _ in range(5000)]\n    os._exit(0)\nprint('said')"
    )
    record([sys.executable, "-c", script], tmp_path / "trace.parquet")
    assert "said" in capfd.readouterr().out
    sizes = Counter(row.size_bytes for row in read_trace(tmp_path / "trace.parquet"))
    assert sizes[777 + 33] < 100


def test_a_shell_script_that_ends_in_exec_is_recorded_as_what_it_executes(tmp_path):
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\nexec {built(tmp_path, THREADS)}\n")
    script.chmod(0o755)
    _, status = record([str(script)], tmp_path / "trace.parquet")
    assert status == 7
    assert sum(row.kind == "realloc" for row in read_trace(tmp_path / "trace.parquet")) == 12_000


def test_a_killed_program_says_so(tmp_path):
    told = []
    program = built(tmp_path, THREADS.replace("return 7", "__builtin_trap()"))
    _, status = record([program], tmp_path / "trace.parquet", told.append)
    assert status < 0
    assert any("the program was ended by" in text for text in told)
    assert any("without its exit handlers" in text for text in told)
    list(heap_operations(read_trace(tmp_path / "trace.parquet")))


def test_a_program_that_asks_for_nothing_leaves_no_trace(tmp_path):
    program = built(tmp_path, "int main(void) { return 0; }")
    with pytest.raises(UsageError, match="asks for nothing"):
        record([program], tmp_path / "trace.parquet")
    assert not (tmp_path / "trace.parquet").exists()


def test_a_program_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match="cannot run nosuch"):
        record(["nosuch"], tmp_path / "trace.parquet")
    assert not list(tmp_path.iterdir())

import pytest

from wcet_probe.errors import UsageError
from wcet_probe.traces.file import write_trace
from wcet_probe.traces.imports import rows_of
from wcet_probe.traces.operations import TraceRow

MTRACE = """= Start
@ ./a:(main+0x1d)[0x1149] + 0x55d0 0x20
@ ./a:[0x1149] + 0x5600 0x8
@ ./a:[0x1160] < 0x55d0
@ ./a:[0x1160] > 0x5700 0x40
@ /lib/libc.so.6:(fopen+0x9)[0x7f] - 0x5600
@ ./a:[0x1170] - 0x5700
= End
"""


def imported(tmp_path, text, name="log"):
    path = tmp_path / name
    path.write_text(text)
    return list(rows_of(path))


def test_a_log_of_mtrace(tmp_path):
    assert imported(tmp_path, MTRACE) == [
        TraceRow("malloc", 1, 32),
        TraceRow("malloc", 2, 8),
        TraceRow("realloc", 1, 64, new_block=3),
        TraceRow("free", 2),
        TraceRow("free", 3),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("= Start\n@ ./a:[0x1] - 0x100\n", "line 2 of log frees what was never allocated, 0x100"),
        ("@ ./a:[0x1] + 0x100 0x8\n@ ./a:[0x1] - 0x100\n@ ./a:[0x1] - 0x100\n", "line 3 of log frees twice, 0x100"),
        ("= Start\n@ ./a:[0x1] + 0x100 0x", "line 2 of log is cut off"),
        ("= Start\nsomething else\n", "line 2 of log is no line of mtrace"),
    ],
)
def test_a_broken_log_is_refused_by_its_line(tmp_path, text, message):
    with pytest.raises(UsageError, match=message):
        imported(tmp_path, text)


def test_csv_with_some_of_the_columns(tmp_path):
    text = "kind,block,size_bytes\nmalloc,1,10\nfree,1,0\n"
    assert imported(tmp_path, text) == [TraceRow("malloc", 1, 10), TraceRow("free", 1)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "has not the columns of a trace"),
        ("", "has not the columns of a trace"),
        ("kind,block,size_bytes\nmalloc,1,ten\n", "line 2 of log is cut off or has no number"),
        ("kind,block,size_bytes\nmalloc,1\n", "line 2 of log is cut off or has no number"),
        ("kind,block,size_bytes\nmalloc,1,2,3\n", "line 2 of log"),
        ("kind,block,size_bytes\nsbrk,1,2\n", "line 2 of log is no operation"),
        ("kind,block,size_bytes\nmalloc,-1,2\n", "line 2 of log is no operation"),
        ("kind,block\nmalloc,1\nfree,1\nfree,1\n", "line 4 of log frees block 1, which was freed before"),
        ("kind,block\nmalloc,1\n\nfree,7\n", "line 4 of log frees block 7, which was never allocated"),
        ("kind,block\nmalloc,1\nmalloc,1\n", "line 3 of log allocates block 1, which is held"),
    ],
)
def test_broken_csv_is_refused_by_its_line(tmp_path, text, message):
    with pytest.raises(UsageError, match=message):
        imported(tmp_path, text)


def test_a_trace_is_read_as_one(tmp_path):
    write_trace(tmp_path / "trace", [TraceRow("malloc", 1, 1)])
    assert list(rows_of(tmp_path / "trace")) == [TraceRow("malloc", 1, 1)]
    with pytest.raises(UsageError, match="there is no file"):
        rows_of(tmp_path / "other")

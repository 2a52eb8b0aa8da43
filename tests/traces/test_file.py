import pytest

from wcet_probe.errors import UsageError, WcetProbeError
from wcet_probe.traces.file import is_trace_file, read_trace, write_trace
from wcet_probe.traces.operations import TraceRow

ROWS = [
    TraceRow("malloc", 1, 2**40, 0, 0, 12),
    TraceRow("memalign", 2, 7, 64, 0, 13),
    TraceRow("realloc", 1, 9, 0, 3, 14),
    TraceRow("free", 2, 0, 0, 0, 15),
]


def test_what_is_written_is_read_in_order(tmp_path):
    path = tmp_path / "it's a trace.parquet"
    rows = ROWS * 20_000
    assert write_trace(path, iter(rows)) == len(rows)
    assert is_trace_file(path)
    assert list(read_trace(path)) == rows
    assert path.stat().st_size < len(rows)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_the_same_rows_give_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        write_trace(tmp_path / name, ROWS)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_an_empty_trace_is_one(tmp_path):
    assert write_trace(tmp_path / "a", []) == 0
    assert list(read_trace(tmp_path / "a")) == []


@pytest.mark.parametrize("kept", [0, 100, -1])
def test_a_trace_that_is_cut_off_is_refused(tmp_path, kept):
    path = tmp_path / "trace.parquet"
    write_trace(path, ROWS)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(UsageError, match="is no whole trace"):
        list(read_trace(path))


def test_a_file_that_is_not_there_names_the_command_that_makes_one(tmp_path):
    with pytest.raises(UsageError, match="wcet-probe record -o"):
        list(read_trace(tmp_path / "trace.parquet"))


def test_an_old_trace_stays_where_the_new_one_cannot_be_made(tmp_path):
    path = tmp_path / "trace.parquet"
    write_trace(path, ROWS)
    before = path.read_bytes()

    def broken():
        yield ROWS[0]
        raise UsageError("the log is broken")

    with pytest.raises(UsageError, match="the log is broken"):
        write_trace(path, broken())
    with pytest.raises(WcetProbeError, match="cannot write"):
        write_trace(tmp_path / "no" / "trace.parquet", ROWS)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]

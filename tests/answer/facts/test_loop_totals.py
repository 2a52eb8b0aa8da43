"""A sum of rounds is proposed where a loop is entered again and again, and what it is told to save is saved."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support import image_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.cli.app import main

LISTS = """\
struct node { struct node *next; int value; };
struct node *heads[32];
int f(int x)
{
    int sum = 0;
    for (int i = 0; i < 32; i++)
        for (struct node *at = heads[i]; at; at = at->next)
            sum += at->value * x;
    return sum;
}
int once(int x)
{
    int sum = 0;
    for (struct node *at = heads[0]; at; at = at->next)
        sum += at->value * x;
    return sum;
}
struct node *ring;
int nested(int x)
{
    for (struct node *from = ring; from->value != x; from = from->next)
        for (struct node *at = from; at->value < x; at = at->next)
            at->value += x;
    return x;
}
"""
TOLD = re.compile(r"with 16 for each entry the bound of a trial is ([\d,]+) instructions, with 16 in all ([\d,]+)")


def skeleton(function, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("guest.c").write_text(LISTS, "utf-8")
    Path("f.elf").write_bytes(image_of(LISTS, load_target("cortex-m4"), ".c").elf)
    assert main(["facts", "f.elf", "--entry", function, "-q"]) == 0
    return capsys.readouterr().out


def bound(key, text, capsys):
    """The bound with one fact of the skeleton ``text`` answered: ``key`` is 16."""
    Path("facts.toml").write_text(
        text.replace('max = "?"', f"{key} = 16").replace('because = "?"', 'because = "so it is"'), "utf-8"
    )
    assert main(["bound", "f.elf", "--entry", "f", "--facts", "facts.toml", "-q"]) == 0
    return re.search(r"at most ([\d,]+) instructions", capsys.readouterr().out)[1]


def test_a_sum_is_proposed_for_the_loop_inside(tmp_path, monkeypatch, capsys):
    text = skeleton("f", tmp_path, monkeypatch, capsys)
    assert text.count('# total = "?"') == 1
    (each, all_rounds) = TOLD.search(text).groups()
    assert each == bound("max", text, capsys)
    assert all_rounds == bound("total", text, capsys)
    uncommented = re.sub('max = "\\?"\n# It is .*\n# total = "\\?"', "total = 16", text)
    assert uncommented != text
    assert all_rounds == bound("max", uncommented, capsys)
    assert int(each.replace(",", "")) > 5 * int(all_rounds.replace(",", ""))


def test_no_sum_is_proposed_for_a_loop_that_is_entered_once(tmp_path, monkeypatch, capsys):
    text = skeleton("once", tmp_path, monkeypatch, capsys)
    assert text.count("[[loop]]") == 1
    assert "total" not in text


def test_a_sum_is_proposed_inside_of_a_loop_that_is_open_as_well(tmp_path, monkeypatch, capsys):
    """That one was told to go round once, and a loop in it was entered once."""
    text = skeleton("nested", tmp_path, monkeypatch, capsys)
    assert text.count("[[loop]]") == 2
    (proposed,) = [table for table in text.split("[[loop]]") if '# total = "?"' in table]
    assert "line = 22" in proposed
    each, all_rounds = (int(number.replace(",", "")) for number in TOLD.search(proposed).groups())
    assert each > 5 * all_rounds

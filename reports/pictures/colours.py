"""Colours that people tell apart who see few of them, and shapes and dashes for print without colour.

Source: M. Okabe, K. Ito, "Color Universal Design", 2008; the order puts apart what is close in grey.
"""

from __future__ import annotations

INK = "#1a1a1a"
MUTED = "#555555"
RULE = "#cfcfcf"
PALE = "#efefef"
PAPER = "#ffffff"

BLACK = "#000000"
ORANGE = "#e69f00"
SKY = "#56b4e9"
GREEN = "#009e73"
BLUE = "#0072b2"
VERMILLION = "#d55e00"
PURPLE = "#cc79a7"

OBSERVED = BLUE
BOUND = VERMILLION
WORST = VERMILLION
WORST_PALE = "#fdeadb"

SERIES = (BLUE, VERMILLION, GREEN, BLACK, PURPLE, ORANGE, SKY)
DASHES = ("", "7 3", "2 3", "9 3 2 3", "12 4")
SHAPES = ("circle", "square", "triangle", "diamond", "cross", "plus")

"""wcet-probe: how long can this call take, at worst? An answer from both sides."""

__version__ = "0.1.0"

"""The command line. Only this package and the reports print; stdout carries the result, stderr all else."""

from wcet_probe.cli.app import main

__all__ = ["main"]

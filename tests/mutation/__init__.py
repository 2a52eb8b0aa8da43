"""Mutants of what soundness hangs on, and the tests that kill them."""

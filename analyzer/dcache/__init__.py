"""Data caches: where an access goes, symbolic cache blocks for lines that no number is known of, and charged misses.

Each module opens with an example. Its words are those of docs/explanation/glossary.md; `example` stands in
tests/analyzer/dcache/test_worked_examples.py, which runs them: what the stages make of a C function on mpc603e.
"""

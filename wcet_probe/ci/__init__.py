"""Bounds held against budgets and baselines, and results compared."""

"""Caches whose lines are known by number: must, may and persistence analysis, and what instruction fetches cost."""

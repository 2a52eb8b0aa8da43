"""Data caches: where an access goes, lines that are known by name only, and the misses that a bound charges."""

"""States of Doug Lea's allocator of the 2.7 design: fast bins, deferred consolidation, sorted bins."""

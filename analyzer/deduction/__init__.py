"""An allocator's own claims, shown of its code by a solver: each operation is executed on terms, way by way."""

"""Questions asked many times: searches for dearer states, sweeps over heaps, the steps of an own allocator."""

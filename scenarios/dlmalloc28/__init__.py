"""States of Doug Lea's allocator of the 2.8 design: small bins and tries."""

"""The machine that observes: Unicorn runs the code, a native observer counts and simulates the caches."""

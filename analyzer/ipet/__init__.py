"""Implicit path enumeration: costs of blocks, the flow system, its exact solution, and the certificate."""

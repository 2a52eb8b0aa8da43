"""States of AVL best-fit: sparsest trees, built level by level."""

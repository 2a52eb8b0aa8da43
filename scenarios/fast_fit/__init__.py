"""States of fast-fit: Cartesian trees in address order."""

"""States of CAMA: descriptors and blocks by cache set."""

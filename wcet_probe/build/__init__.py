"""From C to an image: the compiler, the linked ELF file, its sources, and the program ready to run."""

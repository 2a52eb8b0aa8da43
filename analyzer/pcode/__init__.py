"""Machine code as p-code: lifted by SLEIGH, its meaning on numbers, and an interpreter that is the second engine."""

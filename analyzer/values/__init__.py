"""Value analysis: symbolic terms, abstract states, what an instruction makes of them, and the fixpoint."""

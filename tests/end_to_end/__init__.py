"""Whole answers: what goes through several rooms, from sources, facts and states to numbers and documents."""

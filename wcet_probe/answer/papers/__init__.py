"""The papers reproduced: tables and figures measured anew beside the paper's numbers, and its claims as checks."""

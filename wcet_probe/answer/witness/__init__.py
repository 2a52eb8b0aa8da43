"""The observed side: a state is built, one call is measured, repeated, and held against what is proved."""

"""Abstract execution: what instructions and calls make of a state, and where control goes."""

"""Images translated to C ahead of time, with what the observer counts in line; compiled by the packaged compiler."""

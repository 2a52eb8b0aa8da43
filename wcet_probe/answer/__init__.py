"""Questions answered: witness and bound of one call, held against each other, and studies of many calls."""

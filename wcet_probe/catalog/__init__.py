"""What there is to ask about: allocators and targets, as their files describe them."""

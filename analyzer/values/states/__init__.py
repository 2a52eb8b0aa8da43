"""Abstract states: what each place holds, what is known of it, where paths meet and how loops widen."""

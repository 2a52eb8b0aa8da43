"""What is read off finished values: congruences, depths of recursion, blocks of a call, places nothing comes to."""

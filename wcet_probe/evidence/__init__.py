"""The evidence pack: what is put into it, its audit, and the replay of its witnesses."""

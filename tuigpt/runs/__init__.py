"""Run folders: what a trainer knows is read here, what it is asked is written here. No torch."""

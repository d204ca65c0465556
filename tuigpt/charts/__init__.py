"""Charts as plain Python: scales, thinning and a braille canvas. No Textual, no torch, no numpy."""

"""From a path to token ids: numpy, never torch."""

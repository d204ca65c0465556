"""The generator process, one warm process with torch that the app owns, and its pipe (no torch)."""

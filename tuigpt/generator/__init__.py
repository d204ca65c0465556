"""The generator: one warm process with torch, owned by the app, reached through pipes."""

"""The command line: one file a command, its flags, its call and its words side by side."""

BAD_INPUT = 2
"""Exit status when the user asked for something that cannot be done as asked."""

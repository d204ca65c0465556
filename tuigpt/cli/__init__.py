"""The command line: one file a command, its flags, its call and its words side by side."""

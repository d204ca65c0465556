"""Train a small GPT in the terminal, watch it learn, prompt it, browse its checkpoints."""

__version__ = "0.1.0"

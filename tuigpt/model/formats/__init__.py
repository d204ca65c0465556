"""Models of other programs, read and written: the workshop, nanoGPT, Hugging Face's GPT-2."""

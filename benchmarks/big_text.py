"""What a large text costs: `python benchmarks/big_text.py [--sizes 10,1000] [--tokenizer char]`.

For each size in megabytes, each step in a process of its own, with its seconds and the most memory
that it held (torch's own 200 MB included where it is needed):

- reading: decoding, counting symbols, hashing, finding what is no text;
- learning the tokenizer, and encoding into the cache; both, when they are in the cache already;
- looking for what 5,000 characters of it copy;
- drawing 500 batches of 64 windows of 256 tokens, with the tokens in their file.

The text is made of the speeches of the built-in one, in a random order.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tuigpt.paths import asset
from tuigpt.text.copies import find_copies
from tuigpt.text.disk_cache import Cache
from tuigpt.text.named import open_text
from tuigpt.text.read import scan
from tuigpt.text.split import train_characters
from tuigpt.text.token_file import encode, learn_tokenizer

STEPS = ("reading", "encoding", "encoded before", "500 batches", "copies")


def write_text(path: Path, megabytes: int) -> None:
    """A text of this size."""
    speeches = asset("shakespeare.txt").read_text("utf-8").split("\n\n")
    shuffled = random.Random(0)
    left = megabytes * 1_000_000
    with open(path, "w", encoding="utf-8", newline="\n") as stream:
        while left > 0:
            piece = "\n\n".join(shuffled.sample(speeches, 1000))[:left]
            left -= stream.write(piece)


def work(step: str, path: Path, cache: Path, spec: str) -> None:
    """Do one step, and print its seconds and the most megabytes held."""
    began = time.perf_counter()
    text = open_text([str(path)], cache=cache)
    if step == "copies":
        find_copies(path.read_bytes()[-5000:].decode(), 20, text.chunks())
        tell(began)
        return
    found = scan(text)
    if step != "reading":
        n_train = train_characters(found.characters, 0.1)
        tokenizer = learn_tokenizer(spec, found, n_train)
        ids = encode(text, found, tokenizer, Cache(cache))
    if step == "500 batches":
        import torch

        from tuigpt.training.batches import Corpus

        corpus = Corpus(ids, tokenizer, n_train, 256, torch.device("cpu"), resident_bytes=0)
        generator = torch.Generator().manual_seed(1)
        began = time.perf_counter()
        for _ in range(500):
            corpus.batch(64, generator)
    tell(began)


def tell(began: float) -> None:
    """Print the seconds since then, and the most megabytes held."""
    seconds = time.perf_counter() - began
    # Linux counts in kilobytes, macOS in bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
    print(f"{seconds:.2f} s, {most:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="10,1000", help="in megabytes, with commas between")
    parser.add_argument("--tokenizer", default="char", help="char or bpe:N")
    parser.add_argument("--step", nargs=3, metavar=("STEP", "TEXT", "CACHE"), help="for itself")
    options = parser.parse_args()
    if options.step:
        step, path, cache = options.step
        work(step, Path(path), Path(cache), options.tokenizer)
        return
    for size in map(int, options.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            path, cache = Path(folder, "large.txt"), Path(folder, "cache")
            write_text(path, size)
            print(f"{size:,} MB, {options.tokenizer}")
            for step in STEPS:
                command = [sys.executable, __file__, "--tokenizer", options.tokenizer]
                command += ["--step", step, str(path), str(cache)]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                print(f"{step:>16}  {done.stdout.strip()}", flush=True)


if __name__ == "__main__":
    main()

"""`python -m tuigpt` is the same program as `tuigpt`."""

import os
import sys

if not sys.flags.safe_path and sys.path[:1] in ([""], [os.getcwd()]):
    del sys.path[0]  # what lies in the current folder is not part of the program

from tuigpt.cli.main import main

sys.exit(main())

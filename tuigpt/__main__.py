"""`python -m tuigpt` is the same program as `tuigpt`."""

import sys

from tuigpt.cli import main

sys.exit(main())

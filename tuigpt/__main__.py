"""`python -m tuigpt` is the same program as `tuigpt`."""

import sys

from tuigpt.cli.main import main

sys.exit(main())

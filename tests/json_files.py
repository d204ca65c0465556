"""Reading JSON as it stands in a file, where a test looks at what was written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_json(path: Path) -> Any:
    """What a JSON file holds."""
    return json.loads(path.read_bytes())

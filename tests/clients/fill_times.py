"""Writes copies of payloads in which "@-40s" or "@+3h" is that time, counted from NOW.

    NOW=1794699540 fill_times.py DIRECTORY FILE...
"""

import os
import re
import sys
from datetime import datetime, timezone
from pathlib import Path

SECONDS = {"s": 1, "h": 3600}


def filled(text, now):
    def time(found):
        at = now + int(found[1]) * SECONDS[found[2]]
        return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")

    return re.sub(r"@([+-]\d+)([sh])", time, text)


if __name__ == "__main__":
    directory, *files = map(Path, sys.argv[1:])
    for file in files:
        (directory / file.name).write_text(filled(file.read_text(), int(os.environ["NOW"])))

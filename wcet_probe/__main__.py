"""``python -m wcet_probe``."""

from __future__ import annotations

import sys

from wcet_probe.cli import main

sys.exit(main())

"""The command line, as `python -m dynascope`."""

import sys

from dynascope.cli import main

sys.exit(main())

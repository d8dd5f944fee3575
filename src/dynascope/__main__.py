"""`python -m dynascope` is the command line."""

import sys

from dynascope.cli import main

sys.exit(main())

"""``python -m risingsearch`` is the command ``risingsearch``."""

import sys

from risingsearch.cli.main import main

sys.exit(main())

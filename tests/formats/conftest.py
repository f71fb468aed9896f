import sys
from pathlib import Path

# Pickles of the recorded searches name their modules as the script that wrote them.
sys.path.insert(0, str(Path(__file__).parent))

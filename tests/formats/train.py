"""A training script: its checkpoint is the number of epochs it has behind it."""

import json
import pathlib
import sys


def main(folder, top, last):
    state = pathlib.Path(folder) / "epoch.txt"
    epoch = int(state.read_text()) if state.exists() else 0
    while epoch < int(last):
        epoch += 1
        state.write_text(str(epoch))
        print(json.dumps({"epoch": epoch, "score": float(top) * epoch / (epoch + 4.0)}))


if __name__ == "__main__":
    main(*sys.argv[1:])

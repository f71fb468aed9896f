import argparse
import json

from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier

args = argparse.ArgumentParser()
args.add_argument("--learning_rate", type=float, default=0.01)
args.add_argument("--batch_size", type=int, default=32)
args.add_argument("--epochs", type=int, default=10)
args.add_argument("--optimizer", default="adam")
args = args.parse_args()

X, y = load_digits(return_X_y=True)
model = MLPClassifier(
    solver=args.optimizer,
    learning_rate_init=args.learning_rate,
    batch_size=args.batch_size,
    random_state=0,
)
for epoch in range(1, args.epochs + 1):
    model.partial_fit(X[:1200] / 16, y[:1200], classes=range(10))
    loss = log_loss(y[1200:], model.predict_proba(X[1200:] / 16))
    print(json.dumps({"epoch": epoch, "validation_loss": loss}), flush=True)

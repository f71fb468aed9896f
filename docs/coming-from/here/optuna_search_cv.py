from optuna.distributions import CategoricalDistribution, FloatDistribution
from sklearn.datasets import load_iris
from sklearn.linear_model import SGDClassifier

from risingsearch import RisingSearchCV

X, y = load_iris(return_X_y=True)
param_distributions = {
    "alpha": FloatDistribution(1e-6, 1e-1, log=True),
    "penalty": CategoricalDistribution(["l2", "l1", "elasticnet"]),
}

search = RisingSearchCV(
    SGDClassifier(random_state=0),
    param_distributions,
    budget=100,
    max_epochs=20,
    timeout=600,
    random_state=0,
)
search.fit(X, y)
print(search.best_params_, search.best_score_)

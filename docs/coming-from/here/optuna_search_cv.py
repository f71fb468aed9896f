from optuna.distributions import FloatDistribution, IntDistribution
from sklearn.datasets import load_iris
from sklearn.svm import SVC

from risingsearch import RisingSearchCV

X, y = load_iris(return_X_y=True)
param_distributions = {
    "C": FloatDistribution(1e-10, 1e10, log=True),
    "degree": IntDistribution(1, 5),
}

search = RisingSearchCV(
    SVC(gamma="auto"),
    param_distributions,
    budget=100,  # the rows of twenty full trainings
    resource="n_samples",
    timeout=600,
    random_state=0,
)
search.fit(X, y)
print(search.best_params_, search.best_score_)

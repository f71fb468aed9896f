from optuna.distributions import FloatDistribution, IntDistribution
from optuna_integration import OptunaSearchCV
from sklearn.datasets import load_iris
from sklearn.svm import SVC

X, y = load_iris(return_X_y=True)
param_distributions = {
    "C": FloatDistribution(1e-10, 1e10, log=True),
    "degree": IntDistribution(1, 5),
}

search = OptunaSearchCV(
    SVC(gamma="auto"),
    param_distributions,
    n_trials=100,
    timeout=600,
    random_state=0,
)
search.fit(X, y)
print(search.best_params_, search.best_score_)

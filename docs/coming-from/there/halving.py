from scipy.stats import randint
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import HalvingRandomSearchCV

X, y = load_iris(return_X_y=True)
clf = RandomForestClassifier(random_state=0)
param_distributions = {"max_depth": [3, None], "min_samples_split": randint(2, 11)}

search = HalvingRandomSearchCV(
    clf,
    param_distributions,
    resource="n_estimators",
    max_resources=10,
    random_state=0,
)
search.fit(X, y)
print(search.best_params_, search.best_score_)

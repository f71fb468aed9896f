from scipy.stats import randint
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

from risingsearch import RisingSearchCV

X, y = load_iris(return_X_y=True)
clf = RandomForestClassifier(random_state=0)
param_distributions = {"max_depth": [3, None], "min_samples_split": randint(2, 11)}

search = RisingSearchCV(
    clf,
    param_distributions,
    budget=30,
    max_epochs=10,
    random_state=0,
)
search.fit(X, y)
print(search.best_params_, search.best_score_)

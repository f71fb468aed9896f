import numpy as np
from dask.distributed import Client
from dask_ml.datasets import make_classification
from dask_ml.model_selection import HyperbandSearchCV
from sklearn.linear_model import SGDClassifier

if __name__ == "__main__":
    client = Client(processes=False, dashboard_address=None)
    X, y = make_classification(chunks=20, random_state=0)
    est = SGDClassifier(tol=1e-3)
    param_dist = {
        "alpha": np.logspace(-4, 0, num=1000),
        "loss": ["hinge", "log_loss", "modified_huber", "squared_hinge"],
        "average": [True, False],
    }

    search = HyperbandSearchCV(
        est,
        param_dist,
        max_iter=9,
        random_state=0,
    )
    search.fit(X, y, classes=np.unique(y))
    print(search.best_params_, search.best_score_)
    client.close()

import numpy as np
from dask.distributed import Client
from sklearn.datasets import make_classification
from sklearn.linear_model import SGDClassifier

from risingsearch import RisingSearchCV

if __name__ == "__main__":
    client = Client(processes=False, dashboard_address=None)
    X, y = make_classification(random_state=0)
    est = SGDClassifier(tol=1e-3)
    param_dist = {
        "alpha": np.logspace(-4, 0, num=1000),
        "loss": ["hinge", "log_loss", "modified_huber", "squared_hinge"],
        "average": [True, False],
    }

    search = RisingSearchCV(
        est,
        param_dist,
        budget=60,
        max_epochs=9,
        executor=client.get_executor(),
        random_state=0,
    )
    search.fit(X, y)
    print(search.best_params_, search.best_score_)
    client.close()

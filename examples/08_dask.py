"""
Dask: a search on a cluster
===========================

Any search trains on the workers of a Dask cluster when it gets its executor. The data
are sent once, and a paused model stays on the worker that trained it.
"""

from distributed import Client
from scipy.stats import loguniform
from sklearn.datasets import load_wine
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import scale

from risingsearch import RisingSearchCV

client = Client(
    processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None
)
X, y = load_wine(return_X_y=True)
search = RisingSearchCV(
    SGDClassifier(loss="log_loss", learning_rate="constant", random_state=0),
    {"alpha": loguniform(1e-6, 1.0), "eta0": loguniform(1e-6, 1.0)},
    scoring="neg_log_loss",
    budget=60,
    max_epochs=15,
    cv=0.4,
    random_state=0,
    executor=client.get_executor(),
)
search.fit(scale(X), y)
print(f"log loss {-search.best_score_:.3f} with {search.best_params_}")

client.close()

# %%
# Two epochs at a time; the order is the one in which the cluster finished them.

search.plot_allocation()

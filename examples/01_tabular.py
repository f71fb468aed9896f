"""
scikit-learn: a network on a table
==================================

``RisingSearchCV`` takes the place of ``RandomizedSearchCV``. Here 60 epochs are
shared out among many more networks than they could train in full, on the measurements
of breast tumours that come with scikit-learn.
"""

from scipy.stats import loguniform
from sklearn.datasets import load_breast_cancer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from risingsearch import RisingSearchCV

X, y = load_breast_cancer(return_X_y=True)
search = RisingSearchCV(
    make_pipeline(StandardScaler(), MLPClassifier(random_state=0)),
    {
        "mlpclassifier__hidden_layer_sizes": [(8,), (32,), (128,)],
        "mlpclassifier__learning_rate_init": loguniform(1e-5, 1e-1),
        "mlpclassifier__alpha": loguniform(1e-6, 1.0),
    },
    budget=60,  # epochs, over all configurations
    max_epochs=15,  # for any one of them
    scoring="neg_log_loss",
    cv=0.3,
    random_state=0,
)
search.fit(X, y)
print(f"{search.n_epochs_} epochs, best score {search.best_score_:.4f}")
print(search.best_params_)

# %%
# Where the epochs went. Every row is a network; gaps are pauses, after which it
# trains on from where it was.

search.plot_allocation()

# %%
# What they bought.

search.plot_curves()

"""
scikit-learn: lines of text
===========================

Which of three libraries is a line of documentation from? The lines are the docstrings
of NumPy, SciPy and scikit-learn as they are installed. A linear model trains on
hashed words, one pass per epoch.
"""

import numpy as np
import scipy.stats
import sklearn.linear_model
from scipy.stats import loguniform
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier

from risingsearch import RisingSearchCV


def lines(module):
    texts = [getattr(module, name).__doc__ or "" for name in dir(module)]
    return sorted({line.strip() for text in texts for line in text.splitlines()})


libraries = [np, scipy.stats, sklearn.linear_model]
texts, names = [], []
for library in libraries:
    prose = [line for line in lines(library) if len(line) > 50 and line[0].isupper()]
    texts += prose
    names += [library.__name__.partition(".")[0]] * len(prose)
print(len(texts), "lines, for example:", texts[100])

# %%
# Hashing needs no fit, so it is done once, outside of the search.

X = HashingVectorizer(n_features=2**14).transform(texts)
search = RisingSearchCV(
    SGDClassifier(random_state=0),
    {
        "loss": ["hinge", "log_loss", "modified_huber"],
        "alpha": loguniform(1e-8, 1e-2),
        "penalty": ["l2", "l1", "elasticnet"],
    },
    budget=80,
    max_epochs=20,
    cv=0.3,
    random_state=0,
)
search.fit(X, names)
print(f"{search.best_score_:.3f}", search.best_params_)

# %%
# Most models are left after an epoch or two; the leaders train on in turns.

search.plot_curves()

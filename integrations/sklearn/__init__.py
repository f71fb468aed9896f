"""Search over scikit-learn estimators: ``RisingSearchCV``."""

from risingsearch.errors import needed

# scikit-learn, and what it brings along
PACKAGES = ("sklearn", "scipy", "joblib", "threadpoolctl")

with needed("scikit-learn", "sklearn", of=PACKAGES):
    from risingsearch.integrations.sklearn.search_cv import RisingSearchCV

__all__ = ["RisingSearchCV"]

"""Search over scikit-learn estimators: ``RisingSearchCV``."""

from risingsearch.errors import missing

# scikit-learn, and what it brings along
PACKAGES = ("sklearn", "scipy", "joblib", "threadpoolctl")

try:
    from risingsearch.integrations.sklearn.search_cv import RisingSearchCV
except ModuleNotFoundError as error:
    if not (error.name or "").startswith(PACKAGES):
        raise
    raise missing("scikit-learn", extra="sklearn") from error

__all__ = ["RisingSearchCV"]

import pytest

from benchmarks.cost import pipelines


@pytest.mark.slow
def test_a_pipeline_is_transformed_at_most_as_often_as_in_a_randomized_search():
    counts = pipelines.counted(12, seed=0)
    shares = [row for row in counts if "of RandomizedSearchCV" in row["measure"]]
    assert len(shares) == 3 * len(pipelines.SPACES)
    assert all(row["value"] <= row["bar"] for row in shares)

from risingsearch.policies.tuning.random_search import RandomSearch


def test_random_search_trains_one_arm_after_another(play, concave):
    arms = play(RandomSearch.create(4, 10, 3), concave(4, 3, seed=0), 10)
    assert arms == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]


def test_random_search_finishes_what_was_begun_first():
    policy = RandomSearch.create(3, 9, 3)
    policy.update(1, 1, 0.5, None)
    assert policy.select(2, None) == 1
    policy.available[1] = False
    assert policy.select(2, None) == 0

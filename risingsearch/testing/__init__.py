"""Check that a policy or a trainable of your own keeps the contract of every search.

>>> from risingsearch.policies.stationary.baselines import RoundRobin
>>> check_policy(RoundRobin.create)
"""

from risingsearch.testing.policies import check_policy
from risingsearch.testing.trainables import check_trainable

__all__ = ["check_policy", "check_trainable"]

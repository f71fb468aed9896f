import signal

import numpy as np
import pytest

from risingsearch.policies import POLICIES, policy_info

# In the background a shell has Ctrl-C ignored, here and in all that is started here.
signal.signal(signal.SIGINT, signal.default_int_handler)

NEEDED = {
    "reward_range": (-3.0, 3.0),
    "models": [np.linspace(1.0, end, 200).tolist() for end in (0.2, 0.5, 0.9)],
}


@pytest.fixture(scope="session")
def live_params():
    """Return a function: the parameters that a live search must give a policy."""

    def params(policy):
        if policy not in POLICIES:
            return {}
        return {name: NEEDED[name] for name in policy_info(policy).needs}

    return params

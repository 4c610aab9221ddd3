"""The planner's promise: on settings drawn at random its error is within 20 % of the simulated one."""

from __future__ import annotations

import hashlib
import os
from functools import partial

import numpy as np
import pytest
from plan.simulated import draw_setting, method_of, simulated_error

from crowdveil.inference import METHODS
from crowdveil.plan import predict
from crowdveil.plan.recommend import recommend

# Nobody chose this seed: it is a hash of what is tested. Set CROWDVEIL_SEED to draw other settings.
SEED = int(os.environ.get("CROWDVEIL_SEED", int(hashlib.sha256(b"crowdveil plan").hexdigest()[:8], 16)))
N_SETTINGS = 20


@pytest.mark.slow
@pytest.mark.skipif(not {"channel-bp", "channel-em"} <= set(METHODS), reason="needs the methods that know the channel")
def test_predictions_are_within_a_fifth_of_simulations() -> None:
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    misses = []
    for _ in range(N_SETTINGS):
        setting = draw_setting(rng)
        chosen = recommend(setting, partial(predict, effort=0.2))
        predicted = predict(setting, chosen.channel)
        # A simulation of some thousand questions cannot resolve errors below this: draw again.
        while predicted.error < 0.02 * setting.prior_error:
            setting = draw_setting(rng)
            chosen = recommend(setting, partial(predict, effort=0.2))
            predicted = predict(setting, chosen.channel)
        simulated, noise = simulated_error(setting, chosen.mechanism, rng)
        told = f"{setting} {chosen.mechanism}, {method_of(setting)}"
        print(f"predicted {predicted.error:.4f} simulated {simulated:.4f} ± {noise:.4f}: {told}")
        if abs(predicted.error - simulated) > 0.2 * simulated + 2 * noise:
            misses.append((predicted.error, simulated, told))
    assert misses == []

"""Names of variables, attributes and quantities in staircase records."""

from __future__ import annotations

__all__ = [
    "ACCELERATED_TIME",
    "CURVE",
    "CURVE_LOSS",
    "EXTRA_JUMPS",
    "GROWTH_RATE",
    "INITIAL_LOSS",
    "JUDGED",
    "JUMP_EPOCH",
    "JUMP_STEP",
    "JUMP_TIME",
    "JUMP_TIMES",
    "LEARNED",
    "LEVEL",
    "LEVEL_ERROR",
    "LEVEL_UNCERTAINTY",
    "LOSS_AFTER",
    "LOSS_BEFORE",
    "MISSING_JUMPS",
    "NOT_DUE",
    "OBSERVED_JUMP_TIME",
    "OBSERVED_LOSS_AFTER",
    "OBSERVED_LOSS_BEFORE",
    "PREDICTED_JUMP_TIME",
    "REASON",
    "SEED_JUMP_TIME",
    "SEED_LEARNED",
    "SETTLED",
    "SETTLING_TIME",
    "SLOPE",
    "SLOPE_ERROR",
    "SLOW",
    "STATUS",
    "TIME_ERROR",
    "TIME_UNCERTAINTY",
    "UNCLEAR",
    "UNSETTLED",
    "UNSTABLE_RATE",
    "WORDS",
]

# Variables of the prediction, over `jump`.
JUMP_TIME = "jump_time"
JUMP_STEP, JUMP_EPOCH = "jump_step", "jump_epoch"  # if a learning rate is given
ACCELERATED_TIME = "accelerated_time"
LOSS_BEFORE = "loss_before"
LOSS_AFTER = "loss_after"
LEARNED = "learned"
SLOW = "slow"
REASON = "reason"
# A reason that the loss curve at this scale does not replace.
UNSETTLED = "the integration stopped before the loss converged on an earlier plateau"
TIME_UNCERTAINTY = f"{JUMP_TIME}_uncertainty"  # estimated relative error of the time at this scale
LEVEL_UNCERTAINTY = "level_uncertainty"  # the same for the loss after the jump, relative to the initial loss
SETTLING_TIME = "settling_time"  # time from the jump until the plateau is flat, if a theory predicts it
GROWTH_RATE = "growth_rate"  # of the neuron or mode that activates at the jump
UNSTABLE_RATE = "unstable_rate"  # of the active neurons, as they leave their fixed point

# Variables of a prediction over many draws of the weights, over `seed` and `jump`.
SEED_JUMP_TIME = f"seed_{JUMP_TIME}"
SEED_LEARNED = f"seed_{LEARNED}"

# Variable of the prediction over `time`: the loss curve at this scale.
CURVE_LOSS = "loss"

# Variables of the residual, over `jump`.
OBSERVED_JUMP_TIME = f"observed_{JUMP_TIME}"
PREDICTED_JUMP_TIME = f"predicted_{JUMP_TIME}"
TIME_ERROR = f"{JUMP_TIME}_error"
OBSERVED_LOSS_BEFORE = f"observed_{LOSS_BEFORE}"
OBSERVED_LOSS_AFTER = f"observed_{LOSS_AFTER}"
LEVEL_ERROR = "level_error"
SETTLED = "settled"  # whether the plateau is flat where its level is read
LEVEL_UNSCORED = "level_unscored"  # attribute: the reason why no level is scored
TIME_TOLERANCE = f"{JUMP_TIME}_tolerance"
STATUS = "status"  # one of these, or `SLOW`
JUDGED, UNCLEAR, NOT_DUE = "judged", "unclear", "not due"
SLOPE = "slope"
SLOPE_ERROR = "slope_error"

# Quantities with a tolerance, besides `JUMP_TIME` and `SLOPE`.
LEVEL = "level"
CURVE = "curve"
INITIAL_LOSS = "initial_loss"  # the predicted value is the attribute of this name
MISSING_JUMPS = "missing_jumps"
EXTRA_JUMPS = "extra_jumps"

# Descriptions of the variables, and the variables that are gradient-flow times.
WORDS = {
    JUMP_TIME: "time of the jump",
    JUMP_STEP: "training step of the jump",
    JUMP_EPOCH: "epoch of the jump",
    TIME_ERROR: "relative error of the jump time",
    SEED_JUMP_TIME: "time of the jump",
    SEED_LEARNED: "main learned feature",
    ACCELERATED_TIME: "accelerated time of the jump",
    LOSS_BEFORE: "loss before the jump",
    LOSS_AFTER: "loss after the jump",
    LEARNED: "learned feature",
    SLOW: "whether the jump is slow",
    REASON: "reason",
    SETTLING_TIME: "time until the plateau is flat",
    UNSTABLE_RATE: "rate at which active neurons leave their fixed point",
    TIME_UNCERTAINTY: "relative uncertainty of the jump time",
    LEVEL_UNCERTAINTY: "uncertainty of the plateau level, relative to the initial loss",
    TIME_TOLERANCE: "tolerance of the relative error of the jump time",
    LEVEL_ERROR: "error of the plateau level, relative to the initial loss",
    SETTLED: "whether the plateau is flat where its level is read",
    SLOPE: "growth of the jump time as the initial scale decreases",
    SLOPE_ERROR: "relative error of the slope",
    LEVEL: "plateau level",
    CURVE: "loss curve at this scale",
    STATUS: "whether the jump is scored",
}
JUMP_TIMES = (JUMP_TIME, SEED_JUMP_TIME, SETTLING_TIME)

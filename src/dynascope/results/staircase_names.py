"""The names in the record of a staircase, spelled here and read from here by whoever writes or reads one."""

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

# Of the prediction, over `jump`.
JUMP_TIME = "jump_time"
JUMP_STEP, JUMP_EPOCH = "jump_step", "jump_epoch"  # where a learning rate was said
ACCELERATED_TIME = "accelerated_time"
LOSS_BEFORE = "loss_before"
LOSS_AFTER = "loss_after"
LEARNED = "learned"
SLOW = "slow"
REASON = "reason"
UNSETTLED = "an earlier plateau was not followed to its end"  # a reason that the curve does not replace
TIME_UNCERTAINTY = f"{JUMP_TIME}_uncertainty"  # how far the time may be off at this scale, over the time
LEVEL_UNCERTAINTY = "level_uncertainty"  # the same for the loss after the jump, over the initial loss
SETTLING_TIME = "settling_time"  # how long after its jump a plateau is flat, where a theory knows
GROWTH_RATE = "growth_rate"  # of what becomes active at the jump
UNSTABLE_RATE = "unstable_rate"  # of what is active already, as it leaves its rest

# Of a prediction of many draws of the weights, over `seed` and `jump`.
SEED_JUMP_TIME = f"seed_{JUMP_TIME}"
SEED_LEARNED = f"seed_{LEARNED}"

# Of the prediction, over `time`: the loss at this scale, as it is called in every record.
CURVE_LOSS = "loss"

# Of the residual, over `jump`.
OBSERVED_JUMP_TIME = f"observed_{JUMP_TIME}"
PREDICTED_JUMP_TIME = f"predicted_{JUMP_TIME}"
TIME_ERROR = f"{JUMP_TIME}_error"
OBSERVED_LOSS_BEFORE = f"observed_{LOSS_BEFORE}"
OBSERVED_LOSS_AFTER = f"observed_{LOSS_AFTER}"
LEVEL_ERROR = "level_error"
STATUS = "status"  # one of these, or `SLOW`
JUDGED, UNCLEAR, NOT_DUE = "judged", "unclear", "not due"
SLOPE = "slope"
SLOPE_ERROR = "slope_error"

# Quantities with a tolerance, beside `JUMP_TIME` and `SLOPE`.
LEVEL = "level"
CURVE = "curve"
INITIAL_LOSS = "initial_loss"  # of which the attribute of this name is what is predicted
MISSING_JUMPS = "missing_jumps"
EXTRA_JUMPS = "extra_jumps"

# In words, and which of them are gradient-flow times.
WORDS = {
    JUMP_TIME: "time of the jump",
    JUMP_STEP: "step of the jump",
    JUMP_EPOCH: "epoch of the jump",
    TIME_ERROR: "relative error of the time of the jump",
    SEED_JUMP_TIME: "time of the jump",
    SEED_LEARNED: "what is learned most of all",
    ACCELERATED_TIME: "accelerated time of the jump",
    LOSS_BEFORE: "loss before the jump",
    LOSS_AFTER: "loss after the jump",
    LEARNED: "what is learned",
    SLOW: "whether the jump is slow",
    REASON: "reason",
    SETTLING_TIME: "time until the plateau is flat",
    UNSTABLE_RATE: "rate at which active neurons leave their rest",
    TIME_UNCERTAINTY: "relative uncertainty of the time of the jump",
    LEVEL_UNCERTAINTY: "uncertainty of the plateau over the initial loss",
    LEVEL_ERROR: "relative error of the plateau",
    SLOPE: "growth of the time of the jump as the scale falls",
    SLOPE_ERROR: "relative error of that growth",
    LEVEL: "plateau",
    CURVE: "loss at this scale",
    STATUS: "whether the jump is judged",
}
JUMP_TIMES = (JUMP_TIME, SEED_JUMP_TIME, SETTLING_TIME)

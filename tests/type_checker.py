"""The type checker of the tests: an int may stand for a float, as the typing standard says."""

import beartype
import jaxtyping

check_types = beartype.beartype(
    conf=beartype.BeartypeConf(is_pep484_tower=True, violation_type=jaxtyping.TypeCheckError)
)

"""Optuna: a study whose trials stay within a limit of memory, as many side by side as fit.

    from memfit.integrations.optuna import within

    objective = within("train:objective", limit="16GiB")
    objective.optimize(study, n_trials=100)

See docs/studies.md.
"""

from memfit.errors import MissingExtra

try:
    from memfit.integrations.optuna.bounded_study import Within
    from memfit.integrations.optuna.verdict import ObjectiveFailed, Verdict, constraints_func
    from memfit.integrations.optuna.within import within
except ModuleNotFoundError as error:
    if error.name != "optuna":
        raise
    raise MissingExtra(
        "optuna is not installed: pip install 'memfit[optuna]', or optuna itself"
    ) from None

__all__ = ["ObjectiveFailed", "Verdict", "Within", "constraints_func", "within"]

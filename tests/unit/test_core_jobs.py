"""How many pods a Job runs at once, as its controller counts, and why it runs none."""

import pytest

from cta_group_core.jobs import JobFacts


@pytest.mark.parametrize(
    ("job", "wanted"),
    [
        (JobFacts(), 1),
        (JobFacts(parallelism=4, completions=2), 2),
        (JobFacts(parallelism=2, completions=5, succeeded=4), 1),
        (JobFacts(parallelism=2, completions=2, succeeded=3), 0),
        (JobFacts(parallelism=4), 4),
        (JobFacts(parallelism=4, succeeded=1, active=2), 2),
        (JobFacts(parallelism=4, suspended=True), 0),
        (JobFacts(parallelism=4, conditions=(("Complete", ""),)), 0),
        (JobFacts(parallelism=4, conditions=(("FailureTarget", ""),)), 4),
    ],
)
def test_pods_that_are_wanted(job: JobFacts, wanted: int) -> None:
    """No more than completions that are missing; of a queue without a number nobody new once one has ended well."""
    assert job.wanted == wanted


def test_why_it_runs_none() -> None:
    """A Job that failed says why, one that is suspended says so, and one that is complete or runs says nothing."""
    failed = JobFacts(suspended=True, conditions=(("Failed", "BackoffLimitExceeded: it has reached its limit"),))
    assert (
        failed.why_none == "the Job has failed (BackoffLimitExceeded: it has reached its limit): it makes no more pods"
    )
    assert JobFacts(conditions=(("Failed", ""),)).why_none == "the Job has failed: it makes no more pods"
    assert JobFacts(suspended=True).why_none.startswith("the Job is suspended (spec.suspend)")
    assert JobFacts(conditions=(("Complete", ""),)).why_none == JobFacts().why_none == ""

"""The operator reads from kubelet's words the code that the plugin refused with."""

import pytest

from cta_group_core.errors import CtaGroupError, DoesNotFit, InvalidText, RequestNotAllowed
from cta_group_core.refusals import REFUSED, Cause, cause_of
from cta_group_plugin.encoding import code_of


@pytest.mark.parametrize(
    ("refused", "cause"),
    [
        (DoesNotFit("no GPU has room"), Cause.ROOM),
        (RequestNotAllowed("12 groups are not allowed"), Cause.SIZE),
        (InvalidText("no device id of ours"), Cause.PLUGIN),
    ],
)
def test_why_the_plugin_refused_is_known_to_the_operator(refused: CtaGroupError, cause: Cause) -> None:
    """Kubelet's gRPC library writes a code as one word: FailedPrecondition for FAILED_PRECONDITION."""
    code = code_of(refused).name.title().replace("_", "")
    words = f"Allocate failed due to rpc error: code = {code} desc = {refused}, which is unexpected"
    assert cause_of(REFUSED, words, "nvidia.com/cta-group") is cause

"""CTAQuota as it is stored, and which namespaces belong to it."""

import pytest
from pydantic import ValidationError

from cta_group_core.quota import QuotaSpec, QuotaStatus, quota_key, unenforced_keys


def test_named_namespaces() -> None:
    """A list takes the namespaces it names, whatever their labels."""
    spec = QuotaSpec.model_validate({"groups": 256, "namespaces": ["a", "a-dev"]})
    assert spec.selects("a", {})
    assert not spec.selects("b", {"team": "a"})


def test_selected_namespaces() -> None:
    """A selector takes namespaces by label."""
    spec = QuotaSpec.model_validate({"groups": 256, "namespaceSelector": {"matchLabels": {"team": "a"}}})
    assert spec.selects("anything", {"team": "a"})
    assert not spec.selects("a", {})


def test_no_namespace_without_list_and_selector() -> None:
    """A spec that says neither (the CRD refuses it) takes no namespace rather than all."""
    assert not QuotaSpec(groups=1).selects("a", {})


def test_negative_groups_name_the_field() -> None:
    """An impossible number is refused with the name of its field."""
    with pytest.raises(ValidationError, match="groups"):
        QuotaSpec.model_validate({"groups": -1})


def test_status_reads_back() -> None:
    """What is written for the API server is read back as the same value, unknown fields ignored."""
    status = QuotaStatus.model_validate(
        {"groups": 256, "used": 32, "namespaces": [{"name": "a", "hard": 256, "used": 32}], "lent": 3}
    )
    assert QuotaStatus.model_validate(status.as_api()) == status


def test_only_one_spelling_is_enforced() -> None:
    """The enforced key of a ResourceQuota is the requests form; the other two are known to be ignored."""
    assert quota_key("nvidia.com/cta-group") == "requests.nvidia.com/cta-group"
    assert unenforced_keys("nvidia.com/cta-group") == ("limits.nvidia.com/cta-group", "nvidia.com/cta-group")

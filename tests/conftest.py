"""What holds for every test: hypothesis does not judge speed, since the machine may be busy with something else."""

from hypothesis import HealthCheck, settings

settings.register_profile("cta-group", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("cta-group")

"""How CTAQuotas come in: kopf watches them, a list at the start and now and then makes it complete."""

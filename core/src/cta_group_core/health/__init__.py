"""Whether groups of a GPU may be handed out, decided from what was seen of it. Nothing here reads a clock or a driver.

``xid_catalogue`` says what the driver's error codes mean, ``xid_policy`` applies the operator's own opinion of them,
``recovery_action`` reads what the driver asks for, ``evidence`` is what proves a repair, ``inputs`` is what can be
seen, ``state`` what is remembered, ``machine`` goes from one state to the next, ``verdict`` puts it in words, and
``record`` keeps it over a restart of the process.
"""

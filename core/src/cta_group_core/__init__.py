"""Pure rules of CTA groups, and the forms that all processes share (options, log lines); no I/O, no clock."""

"""Pure rules of CTA groups: units, ids, slices, placement, quota and plans; no I/O, no clock."""

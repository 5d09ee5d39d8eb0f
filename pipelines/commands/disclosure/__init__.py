"""`plumbline disclosure ...`: what gender models assume when none is given."""

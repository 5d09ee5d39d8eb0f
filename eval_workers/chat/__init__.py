"""Send requests to a model on a server, within a budget, and record them in a ledger."""

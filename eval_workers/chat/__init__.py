"""Requests to a chat or completion model on a server, within a budget and recorded in a ledger."""

"""Requests to a chat or completion model behind a server, within a budget and on a ledger."""

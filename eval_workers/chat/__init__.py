"""Asking a chat or completion model behind a server: bounded, in a ledger, within a budget."""

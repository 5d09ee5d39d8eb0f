"""Steps that can be resumed: missing rows are computed in chunks and published together."""

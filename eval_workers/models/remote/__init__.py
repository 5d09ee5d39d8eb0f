"""What a backend of a model behind a server needs: the protocol of echoes, and its probe."""

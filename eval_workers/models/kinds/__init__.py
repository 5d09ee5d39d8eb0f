"""What each kind of model that is loaded here can say about a text."""

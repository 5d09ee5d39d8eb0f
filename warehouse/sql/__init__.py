"""SQL files: views, metrics, checks and more. The first line of a file says what a row is."""

"""SQL files: views, metrics, checks and more. The first line of each says what one row is."""

"""What pages say of figures: findings from rows, models by text and family, one wording a kind."""

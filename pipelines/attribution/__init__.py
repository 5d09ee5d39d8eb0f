"""Attribution of a model's preferences to documents of the text that it was trained on."""

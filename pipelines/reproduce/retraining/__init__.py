"""Study of docs/attribution-study.md: do attributions predict what leaving out does?"""

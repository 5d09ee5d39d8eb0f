"""Study of docs/attribution-study.md: do attributions predict effects of leaving documents out?"""

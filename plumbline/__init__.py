"""Plumbline: which way a language model leans, and whether it follows its text.

The rooms are directories of the repository; this package links them, so that they are imported as
``plumbline.jobs``, ``plumbline.warehouse``, ... and collide with no other package.
"""

"""The version of the storage format.

A new table, or a new column that may be NULL, keeps the version: older files are read with NULL in
the column. Any other change increases it, and a warehouse of another version is refused.
"""

from __future__ import annotations

#: The file that marks a directory as a warehouse, and holds the version.
MARKER = "plumbline.json"
#: The version that this Plumbline reads and writes.
FORMAT = 7

"""The report: one HTML page of what a warehouse holds, and the page of a comparison."""

"""Methods of attribution, one module each (see ``attribution.contract``)."""

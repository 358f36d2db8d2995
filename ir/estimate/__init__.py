"""Estimates: what a spec or a loop nest costs, before anything runs."""

"""Lowering: a spec and a schedule become a loop nest; what each decision may say."""

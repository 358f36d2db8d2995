"""The search loop: ask, evaluate, report; and the interfaces of policies and operators."""

"""How many agents fit: the drone system as described and made to fit, measured."""

"""How near memfit's predictions come to the peaks of real training runs."""

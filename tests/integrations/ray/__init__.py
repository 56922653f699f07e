"""Real clusters of Ray, three nodes on loopback: in processes of their own, as users have them."""

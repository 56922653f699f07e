"""Vector envs whose workers share what they import and write into shared memory."""

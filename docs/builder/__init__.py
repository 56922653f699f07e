"""Builds the site: pages as they are, reference pages made of the code, and one menu."""

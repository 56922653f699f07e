"""Explanations of live processes: do the rows add up, and does explaining leave no trace?"""

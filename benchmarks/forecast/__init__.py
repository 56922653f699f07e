"""Do forecasts of recorded runs come true, and do their intervals hold what they promise?"""

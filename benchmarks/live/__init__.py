"""What is told of live programs: how soon, how much by holder, at which cost, and is it right?"""

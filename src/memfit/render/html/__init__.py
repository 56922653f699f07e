"""A result as one page that opens anywhere: verdict, pictures, numbers, and its own data."""

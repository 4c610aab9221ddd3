"""What every reproduction shares: the result type, the runner and the datasets."""

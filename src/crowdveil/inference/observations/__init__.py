"""What a report says through its channel: likelihoods, unbiased votes and numbers, response rates."""

"""What lifted code calls: where each call is sent, and what is done there."""

"""What makes two people similar."""
